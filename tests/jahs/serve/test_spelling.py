"""Blinded names: nothing of the space can be read, everything can be said, and what is found is the same."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jahs.errors import InvalidConfig
from jahs.schema import CONFIG_KEYS, OPS
from jahs.serve.conversation import Conversation
from jahs.serve.spelling import BlindSpelling, Spelling
from jahs.simulate import visible
from jahs.tasks.metrics import METRICS
from tests.jahs.serve.conftest import make_terms, told

TERMS = make_terms(search="sizes")
VIEW = visible(TERMS.view)
SEEDS = st.integers(0, 2**32 - 1)


def configs(spelling: Spelling):
    """Configs as a client writes them."""
    return st.fixed_dictionaries(
        {
            name: st.floats(facts["lower"], facts["upper"])
            if facts["kind"] == "float"
            else st.sampled_from(facts["choices"])
            for name, facts in spelling.parameters().items()
        }
    )


@given(SEEDS, st.data())
def test_every_blinded_config_is_a_config_and_no_two_are_the_same(seed: int, data: st.DataObject) -> None:
    spelling = BlindSpelling(VIEW, seed=seed)
    one, other = data.draw(configs(spelling)), data.draw(configs(spelling))
    read = [VIEW.space.validate(spelling.read_config(each)) for each in (one, other)]
    differ = {name for name in one if one[name] != other[name] and not isinstance(one[name], float)}
    assert len(differ) == sum(
        read[0][key] != read[1][key]
        for key in CONFIG_KEYS
        if not isinstance(read[0][key], float) or key == "Resolution"
    )


@given(SEEDS)
def test_the_operations_share_their_letters(seed: int) -> None:
    spelling = BlindSpelling(VIEW, seed=seed)
    letters = [key.choices for key in spelling._keys.values() if key.parameter.name in OPS]
    assert len(letters) == 6
    assert all(each == letters[0] for each in letters)


def test_seeds_permute_keys_operations_and_metrics() -> None:
    made = [BlindSpelling(VIEW, seed=seed) for seed in range(20)]
    assert len({tuple(key.parameter.name for key in each._keys.values()) for each in made}) == 20
    assert len({tuple(each.metrics) for each in made}) > 10
    assert len({str(key.choices) for each in made for key in each._keys.values() if key.parameter.name == "Op1"}) > 10
    assert [str(each._keys) for each in made] == [str(BlindSpelling(VIEW, seed=seed)._keys) for seed in range(20)]


@pytest.mark.parametrize("fidelities", [("epoch",), ("N", "W"), ("epoch", "N", "W", "Resolution")], ids="-".join)
def test_nothing_that_a_blind_client_reads_names_the_space(fidelities: tuple[str, ...]) -> None:
    config = {"x1": "?", "y": 3}
    requests = [
        {"do": "space"},
        *({"do": "submit", "config": config, "at": at} for at in (None, 13, {"N": 3}, {"f1": "a"}, "epoch")),
    ]
    with Conversation(make_terms(fidelities=fidelities), blind=2) as conversation:
        first = conversation.answer({"do": "space"})
        legal = {
            name: each["choices"][0] if each["kind"] != "float" else 0.5 for name, each in first["parameters"].items()
        }
        legal_requests = [
            {"do": "submit", "config": legal, "at": at, "reports": reports}
            for at, reports in itertools.product((None, 1, 13, {"f1": 1}, {"N": 1}), ([], [1], [50], "a"))
        ]
        text = json.dumps(told(conversation, *requests, *legal_requests, {"do": "wait"}, {"do": "end"}))
    words = {*CONFIG_KEYS, *METRICS, "epoch", "acc", "ReLU", "fashion", "network", "training"} - {"N", "W"}
    said = text.replace('{\\"N\\"', "").replace("at: N=", "").replace("at={'N", "")
    assert [word for word in sorted(words) if word in said.replace("f1='epoch'", "")] == []


def test_a_blind_client_finds_what_a_seeing_one_finds(tmp_path) -> None:
    spelling = BlindSpelling(VIEW, seed=4)
    config = {
        name: each["choices"][-1] if each["kind"] != "float" else 0.25 for name, each in spelling.parameters().items()
    }
    requests = [{"do": "submit", "config": config, "at": 3}, {"do": "wait"}, {"do": "end"}]
    with Conversation(TERMS, blind=4, log=tmp_path / "blind.jsonl") as conversation:
        blind = told(conversation, *requests)[1]["trials"][0]
    requests[0]["config"] = dict(spelling.read_config(config))
    with Conversation(TERMS, log=tmp_path / "plain.jsonl") as conversation:
        plain = told(conversation, *requests)[1]["trials"][0]
    assert blind["config"] == config
    assert {spelling.metrics[name]: value for name, value in plain["metrics"].items()} == blind["metrics"]
    assert blind["at"] == {"f1": 3}
    logs = [(tmp_path / f"{name}.jsonl").read_text().splitlines() for name in ("blind", "plain")]
    assert logs[0][1:] == logs[1][1:]
    assert json.loads(logs[0][0])["blind"] == 4


def test_every_fault_of_a_blinded_config_is_named_at_once() -> None:
    spelling = BlindSpelling(VIEW, seed=0)
    shown = spelling.parameters()
    float_, choice = (
        next(n for n, each in shown.items() if (each["kind"] == "float") == is_float) for is_float in (True, False)
    )
    with pytest.raises(InvalidConfig) as caught:
        spelling.read_config({"LearningRate": 0.1, float_: 1.5, choice: True})
    faults = caught.value.faults
    assert len(faults) == 1 + len(shown)
    assert f"{float_}=1.5 is not a number in [0, 1]" in faults
    assert any(fault.startswith(f"{choice}=True is not one of ") for fault in faults)
    assert sum(" is missing; it is " in fault for fault in faults) == len(shown) - 2
