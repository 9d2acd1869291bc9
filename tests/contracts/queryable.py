"""The contract of every `Queryable`: subclass `QueryableContract` and define the fixture `bench`."""

import pickle

import numpy as np
import pytest

from jahs.errors import InvalidArgument, InvalidFidelity
from jahs.queries.queryable import Queryable


class QueryableContract:
    """`bench` answers valid_acc, runtime, and any other metrics that it names."""

    @pytest.fixture
    def configs(self, bench: Queryable) -> list:
        return bench.sample(5, seed=0)

    def test_samples_are_of_the_space_and_reproducible(self, bench, configs) -> None:
        assert [bench.space.validate(config) for config in configs] == configs
        assert bench.sample(2, seed=0) == configs[:2]
        assert bench.sample(seed=0) == configs[0]

    def test_the_full_fidelity_is_the_highest_and_what_is_asked_when_nothing_is_said(self, bench, configs) -> None:
        assert dict(bench.full) == {name: values[-1] for name, values in bench.fidelities.items()}
        assert all(list(values) == sorted(values) for values in bench.fidelities.values())
        result = bench.query(configs[0])
        assert result == bench.query(configs[0], at=bench.full) == bench.query(configs[0], at=result.fidelity)
        assert result.fidelity == bench.fidelity() == bench.fidelity(bench.full)

    def test_every_form_of_a_query_has_the_same_bits(self, bench, configs) -> None:
        low = {name: values[0] for name, values in bench.fidelities.items()}
        wide = bench.query_many(configs, at=[low, bench.full])
        lowest = bench.query_many(configs, each_at=[low] * len(configs))
        columns = {key: np.array([config[key] for config in configs]) for key in bench.space.searched}
        assert list(wide) == list(bench.metrics)
        for name in bench.metrics:
            singles = [[bench.query(c, at=at).as_dict()[name] for at in (low, bench.full)] for c in configs]
            assert wide[name].tolist() == singles
            assert lowest[name].tolist() == wide[name][:, 0].tolist()
            assert bench.query_many(configs)[name].tolist() == wide[name][:, 1].tolist()
            assert bench.query_many(columns)[name].tolist() == wide[name][:, 1].tolist()

    def test_a_trajectory_ends_where_a_query_is(self, bench, configs) -> None:
        path = bench.trajectory(configs[0])
        assert path["epoch"].tolist() == list(range(1, bench.max_epoch + 1))
        assert (np.diff(path["runtime"]) > 0).all()
        assert {name: values[-1] for name, values in path.items() if name != "epoch"} == bench.query(configs[0]).values

    def test_metrics_are_chosen_by_name_and_an_empty_batch_is_empty(self, bench, configs) -> None:
        assert list(bench.query(configs[0], metrics=["runtime", "valid_acc"]).values) == ["runtime", "valid_acc"]
        assert {name: values.shape for name, values in bench.query_many([], metrics=["runtime"]).items()} == {
            "runtime": (0,)
        }
        for empty in ([], bench.space.sample_columns(0, seed=0)):
            assert {values.shape for values in bench.query_many(empty).values()} == {(0,)}
            assert {values.shape for values in bench.query_many(empty, at=[1, 2]).values()} == {(0, 2)}
            assert {values.shape for values in bench.query_many(empty, each_at=[]).values()} == {(0,)}
            assert bench.objectives(empty).shape == (0, 1)
        assert {values.shape for values in bench.query_many(configs, at=[]).values()} == {(len(configs), 0)}

    def test_fidelities_are_as_many_as_configs_and_given_once(self, bench, configs) -> None:
        with pytest.raises(InvalidFidelity, match="each_at: 1 fidelities for 2 configs"):
            bench.query_many(configs[:2], each_at=[1])
        with pytest.raises(InvalidFidelity, match="each_at=3 is not a list of fidelities"):
            bench.query_many(configs, each_at=3)
        with pytest.raises(InvalidArgument, match="at and each_at are both given"):
            bench.query_many(configs[:2], at=1, each_at=[1, 2])

    @pytest.mark.parametrize("at", [0, -1, 10**6, 1.5, float("nan"), "5", True], ids=repr)
    def test_what_is_no_fidelity_is_refused(self, bench, configs, at) -> None:
        for ask in (
            lambda: bench.query(configs[0], at=at),
            lambda: bench.query_many(configs, at=at),
            lambda: bench.query_many(configs, at=[at]),
            lambda: bench.query_many(configs, each_at=[at] * len(configs)),
        ):
            with pytest.raises(InvalidFidelity, match=r"(at|epoch)="):
                ask()

    def test_it_survives_pickling(self, bench, configs) -> None:
        restored = pickle.loads(pickle.dumps(bench))
        assert restored.query(configs[0]) == bench.query(configs[0])
        assert restored.space == bench.space
        assert restored.fidelities == bench.fidelities
