"""The distance of optimisers from an exhaustive optimum, on a tiny release."""

from pathlib import Path

import numpy as np
import pytest

from experiments.science import optimum
from experiments.science.optimum import Optimum, distances, ends_of_pack, find_pack, measure_optimum
from experiments.science.subjects import open_subject
from jahs.spaces.cell import all_ops
from jahs.spaces.parameters import LARGEST
from tests.experiments.conftest import TASK
from workshop.exhaustive import Exhaustive


def test_no_config_at_full_size_is_better(release, monkeypatch):
    monkeypatch.setattr(optimum, "cells_to_ask", lambda *_: all_ops()[::500])
    subject = open_subject(TASK, release)
    found = measure_optimum(subject, n_floats=2)
    assert found.found.config.items() >= LARGEST.items()
    assert (
        found.known >= subject.bench.query_many(subject.bench.space.fix(LARGEST).sample(50, seed=0))["valid_acc"].max()
    )
    assert len(found.on_refits) == 0


def test_who_ends_at_the_optimum_is_no_point_away(release_with_refits):
    subject = open_subject(TASK, release_with_refits)
    best, *others = sorted(
        subject.bench.space.fix(LARGEST).sample(20, seed=0), key=lambda config: -subject.bench.query(config).valid_acc
    )
    exhaustive = Exhaustive(best, subject.bench.query(best).valid_acc, 0.0, 20)
    on_refits = np.array([refit.query(best).valid_acc for refit in subject.refits])
    known = {"best": np.nan, "known": np.nan, "known_on_refits": on_refits}
    one = Optimum(found=exhaustive, n_cells=1, on_refits=on_refits, **known)
    first, last = distances(subject, one, {"others": tuple(others), "best": (best, best)})
    assert (first.title, first.own.value, first.on_refits.value, first.near) == ("best", 0, 0, 1)
    ends = np.array([subject.bench.query(config).valid_acc for config in others])
    assert last.own.value == pytest.approx(np.mean(exhaustive.value - ends))
    assert last.near == np.mean(exhaustive.value - ends <= 0.5)


@pytest.mark.parametrize(("study", "n_optimizers", "n_seeds"), [("baselines", 8, 100), ("strong", 14, 15)])
def test_the_shipped_pack_is_found_and_has_every_seed_of_an_optimiser(study, n_optimizers, n_seeds, tmp_path):
    data = Path(__file__).resolve().parents[2] / "data"
    pack = find_pack(open_subject("fashion_mnist_mini", None, data=data), study)
    assert pack is not None
    ends = ends_of_pack(pack, "fashion_mnist_mini")
    assert len(ends) == n_optimizers
    assert {len(configs) for configs in ends.values()} == {n_seeds}
    assert find_pack(open_subject("fashion_mnist_mini", None, data=tmp_path), study) is None
