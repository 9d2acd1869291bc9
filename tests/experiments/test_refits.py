"""Surrogates that leave out recorded configs."""

import numpy as np
import pytest

import jahs
from experiments.refits import refits
from jahs.errors import InvalidArgument, MissingData
from workshop.ranks import kendall_tau


def test_they_answer_as_the_releases_own_does_but_not_the_same():
    bench = jahs.Benchmark()
    columns = bench.space.sample_columns(200, seed=0)
    own = bench.query_many(columns, at=12, metrics=("valid_acc",))["valid_acc"]
    models = list(refits(bench, "valid_acc", n_folds=2, seed=0))
    assert len(models) == 2
    answers = [model.query_many(columns, at=12, metrics=("valid_acc",))["valid_acc"] for model in models]
    assert not np.array_equal(*answers)
    for answer in answers:
        assert kendall_tau(own, answer) > 0.6
        assert np.all((answer > 0) & (answer < 100))
    assert [*models[0].metrics] == ["valid_acc"]
    assert models[0].max_epoch == bench.max_epoch


def test_runtime_is_that_of_all_epochs_so_far():
    bench = jahs.Benchmark()
    (model, _) = refits(bench, "runtime", n_folds=2, seed=0)
    columns = bench.space.sample_columns(20, seed=0)
    first, last = (model.query_many(columns, at=epoch, metrics=("runtime",))["runtime"] for epoch in (1, 12))
    assert last == pytest.approx(12 * first, rel=1e-6)


def test_what_cannot_be_fitted_again_is_refused(release):
    with pytest.raises(MissingData, match=r"quality\.json"):
        list(refits(jahs.Benchmark(release=release), "valid_acc", n_folds=2, seed=0))
    with pytest.raises(InvalidArgument, match="n_folds=1 "):
        list(refits(jahs.Benchmark(), "valid_acc", n_folds=1, seed=0))
