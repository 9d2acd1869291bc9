from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from randomgen import Philox
from scipy.stats import chi2_contingency, chisquare

from jahs.schema import OPS
from jahs.spaces.columns import config_ids, rows
from jahs.spaces.parameters import PARAMETERS
from pipeline.sampling import run_seeds, sample_config
from workshop import numbered
from workshop.numbered import FIDELITY_GROUPS, FINAL_SEED, N_GROUPS, full_range, sample_range

N_CONFIGS = 200_000
GOLDEN_FIRST, GOLDEN_LAST = "ef22125d4ab2624c", "378bbfb7f5bd9f95"
GOLDEN_FULL = "597ccbdffa79d95d"
UNLIKELY = 1e-4  # the seed is fixed, so that this never fails by chance


@pytest.fixture(scope="module")
def many():
    return sample_range(0, N_CONFIGS)


def test_200_000_configs_are_all_distinct(many):
    assert len(np.unique(config_ids(many))) == N_CONFIGS


@pytest.mark.parametrize("name", [name for name, parameter in PARAMETERS.items() if len(parameter.choices) > 1])
def test_choices_are_uniform(many, name):
    counts = [int((many[name] == choice).sum()) for choice in PARAMETERS[name].choices]
    assert sum(counts) == N_CONFIGS
    assert chisquare(counts).pvalue > UNLIKELY


@pytest.mark.parametrize("name", ["LearningRate", "WeightDecay"])
def test_floats_are_uniform_on_a_log_scale(many, name):
    edges = np.geomspace(PARAMETERS[name].lower, PARAMETERS[name].upper, 101)
    counts, _ = np.histogram(many[name], edges)
    assert counts.sum() == N_CONFIGS
    assert chisquare(counts).pvalue > UNLIKELY


def test_keys_are_independent_of_one_another_and_of_the_group(many):
    group = np.arange(N_CONFIGS) % N_GROUPS
    rate = np.digitize(np.log(many["LearningRate"]), np.log(np.geomspace(1e-3, 1, 11)[1:-1]))
    activation = np.searchsorted(["Hardswish", "Mish", "ReLU"], many["Activation"])
    labels = {**{op: many[op] for op in OPS}, "Activation": activation, "rate": rate, "group": group}
    for (name, a), (other, b) in combinations(labels.items(), 2):
        assert chi2_contingency(np.histogram2d(a, b, (a.max() + 1, b.max() + 1))[0]).pvalue > UNLIKELY, (name, other)


@given(st.integers(1, 2000))
def test_every_prefix_is_balanced_over_the_fidelity_groups(n):
    prefix = sample_range(0, n)
    counts = [
        int(((prefix["N"] == n_cells) & (prefix["W"] == width) & (prefix["Resolution"] == resolution)).sum())
        for n_cells, width, resolution in FIDELITY_GROUPS
    ]
    assert len(counts) == 27
    assert max(counts) - min(counts) <= 1


def test_repeats_are_balanced_over_the_fidelity_groups():
    repeated = [number % N_GROUPS for number in range(10 * N_GROUPS) if len(run_seeds(number)) == 3]
    assert sorted(repeated) == list(range(N_GROUPS))
    assert run_seeds(0) == run_seeds(10) == (0, 1, 2)
    assert run_seeds(7) == (0,)


@given(st.integers(0, 10**9), st.integers(0, 30), st.integers(0, 2**63))
def test_a_number_gives_its_config_in_whatever_range_it_is_drawn(start, at, seed):
    together = rows(sample_range(start, start + 31, seed=seed))
    assert rows(sample_range(start + at, start + at + 1, seed=seed)) == [together[at]]


def test_the_first_configs_never_change():
    config = sample_config(0)
    assert f"{config_ids([config])[0]:016x}" == GOLDEN_FIRST
    assert f"{config_ids([sample_config(N_CONFIGS - 1)])[0]:016x}" == GOLDEN_LAST


def _streams_of_jahs(n_workers: int, n_words: int) -> np.ndarray:
    """One Philox key, and as counters of the workers 0, 1, 2, ..."""
    return np.array([Philox(key=1, counter=t, number=4, width=64).random_raw(n_words) for t in range(n_workers)])


def test_counting_a_stream_up_by_one_repeats_it_shifted_by_four_words():
    streams = _streams_of_jahs(100, 400)
    assert np.array_equal(streams[1:, :-4], streams[:-1, 4:])
    assert len(np.unique(streams)) == 4 * 100 + 396, "of 40,000 words"


def test_no_two_numbers_read_the_same_words(monkeypatch):
    read = []

    class Recorder(Philox):
        def random_raw(self, *args, **kwargs):
            read.append(super().random_raw(*args, **kwargs))
            return read[-1]

    monkeypatch.setattr(numbered, "Philox", Recorder)
    for start in range(0, N_CONFIGS, 25_000):  # as eight workers would
        sample_range(start, start + 25_000)
    words = np.concatenate(read)
    assert len(words) == 16 * N_CONFIGS
    words.sort()
    assert np.all(words[1:] != words[:-1])


def test_the_stream_at_full_size_is_uniform_in_all_else_and_its_own():
    full = full_range(0, 20_000)
    assert {key: np.unique(full[key]).tolist() for key in ("N", "W", "Resolution")} == {
        "N": [5],
        "W": [16],
        "Resolution": [1.0],
    }
    for name in (*OPS, "Activation", "TrivialAugment"):
        counts = [int((full[name] == choice).sum()) for choice in PARAMETERS[name].choices]
        assert chisquare(counts).pvalue > UNLIKELY, name
    for name in ("LearningRate", "WeightDecay"):
        edges = np.geomspace(PARAMETERS[name].lower, PARAMETERS[name].upper, 51)
        assert chisquare(np.histogram(full[name], edges)[0]).pvalue > UNLIKELY
        assert not np.isin(full[name], sample_range(0, 20_000)[name]).any()
    assert len(np.unique(config_ids(full))) == 20_000
    assert [rows(full_range(number, number + 1))[0] for number in (0, 7, 19_999)] == [
        rows(full)[number] for number in (0, 7, 19_999)
    ]
    assert f"{config_ids(full_range(0, 1))[0]:016x}" == GOLDEN_FULL


def test_the_stream_of_the_final_test_set_shares_nothing_with_the_stream_at_full_size():
    final = full_range(0, 1000, seed=FINAL_SEED)
    assert set(final["N"].tolist()) == {5}
    for name in ("LearningRate", "WeightDecay"):
        assert not np.isin(final[name], full_range(0, 20_000)[name]).any()
