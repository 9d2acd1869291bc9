"""Durations and dates are no numbers, wherever a number is read: numpy derives durations from its integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jahs
from jahs.adapters.evaluating import Budgets
from jahs.adapters.values import to_config
from jahs.errors import JahsError
from jahs.queries.views import View
from jahs.simulate import Proposal, Simulation
from jahs.spaces.parameters import PARAMETERS
from jahs.tasks.objectives import read_objectives
from jahs.tasks.pareto import hypervolume

Takes = Callable[[Any], object]  # Any: what is no number

_TYPES = ("m8[ns]", "m8[s]", "m8[D]", "m8[Y]", "m8", "M8[ns]", "M8[s]", "M8[D]", "M8[Y]")
_TIMES = [
    *(pytest.param(np.array([1]).astype(name)[0], id=name) for name in _TYPES),
    pytest.param(np.timedelta64("NaT"), id="m8 NaT"),
    pytest.param(np.datetime64("NaT"), id="M8 NaT"),
]
_CONFIG = jahs.space().default()


@pytest.fixture(scope="module")
def bench() -> jahs.Benchmark:
    return jahs.Benchmark("fashion_mnist_mini")


def _readers(bench: jahs.Benchmark) -> dict[str, Takes]:
    """Everything that reads a number."""
    view = View(bench, fidelities=("epoch", "N"))
    columns = jahs.space().sample_columns(1, seed=0)

    def simulate(proposal: Proposal | None = None, **settings: Any) -> object:  # Any: a setting that is no number
        simulation = Simulation(bench, **{"n_trials": 1, "workers": 1, **settings})
        return simulation.submit(proposal or Proposal(config=_CONFIG))

    readers: dict[str, Takes] = {
        "config_id": lambda t: jahs.config_id({**_CONFIG, "N": t}),
        "to_config": lambda t: to_config({"N": t}, jahs.space().fix({k: v for k, v in _CONFIG.items() if k != "N"})),
        "sample n": lambda t: bench.sample(t, seed=0),
        "sample seed": lambda t: bench.sample(seed=t),
        "space seed": lambda t: jahs.space().sample(seed=t),
        "random_state": bench.sample_config,
        "at": lambda t: bench.query(_CONFIG, at=t),
        "at of a mapping": lambda t: bench.query(_CONFIG, at={"epoch": t}),
        "at, many": lambda t: bench.query_many([_CONFIG], at=[t]),
        "each_at": lambda t: bench.query_many([_CONFIG], each_at=np.array([t])),
        "seed": lambda t: bench.query(_CONFIG, seed=t),
        "seed of no dimensions": lambda t: bench.query(_CONFIG, seed=np.array(t)),  # type: ignore[arg-type]
        "seeds": lambda t: bench.query_many([_CONFIG], seed=[t]),
        "seeds of an array": lambda t: bench.query_many([_CONFIG], seed=np.array([t])),
        "frm": lambda t: bench.trajectory(_CONFIG, frm=t),
        "step": lambda t: bench.trajectory(_CONFIG, step=t),
        "nepochs": lambda t: bench(_CONFIG, nepochs=t),
        "fidelity": view.fidelity,
        "fidelity N": lambda t: view.fidelity({"N": t}),
        "path": view.path,
        "budget": Budgets(view).fidelity,
        "metrics": lambda t: bench.query(_CONFIG, metrics=[t]),
        "hypervolume": lambda t: hypervolume(np.array([[t, t]]), [2.0, 2.0]),
        "objectives": lambda t: read_objectives(["latency"])[0].minimised([t]),
        "simulation seed": lambda t: simulate(seed=t),
        "evaluation_seed": lambda t: simulate(evaluation_seed=t),
        "budget of a simulation": lambda t: simulate(budget=t),
        "n_trials": lambda t: simulate(n_trials=t),
        "workers": lambda t: simulate(workers=t),
        "failure_rate": lambda t: simulate(failure_rate=t),
        "speeds": lambda t: simulate(speeds=[t]),
        "thinking": lambda t: simulate(thinking=t),
        "proposal seed": lambda t: simulate(Proposal(config=_CONFIG, seed=t)),
        "proposal at": lambda t: simulate(Proposal(config=_CONFIG, at=t)),
        "reports": lambda t: simulate(Proposal(config=_CONFIG, reports=(t,))),
    }
    for name in PARAMETERS:
        readers[f"config {name}"] = lambda t, name=name: jahs.validate({**_CONFIG, name: t})  # type: ignore[misc]
        readers[f"0-d {name}"] = lambda t, name=name: jahs.validate({**_CONFIG, name: np.array(t)})  # type: ignore[misc]
        readers[f"column {name}"] = lambda t, name=name: bench.query_many({**columns, name: np.array([t])})  # type: ignore[misc]
        readers[f"objects {name}"] = lambda t, name=name: bench.query_many({**columns, name: [t]})  # type: ignore[misc]
    return readers


@pytest.mark.parametrize("time", _TIMES)
def test_no_reader_takes_a_duration_or_a_date_for_a_number(bench: jahs.Benchmark, time: np.generic) -> None:
    faults = []
    for name, read in _readers(bench).items():
        try:
            read(time)
        except JahsError:  # noqa: PERF203  # each reader is tried
            continue
        except Exception as err:  # noqa: BLE001  # any other error is a fault, too
            faults.append(f"{name} raises {err!r}")
        else:
            faults.append(name)
    assert not faults


def test_every_reader_of_a_seed_has_one_range(bench: jahs.Benchmark) -> None:
    from experiments.optimizers import make

    readers: dict[str, Takes] = {name: read for name, read in _readers(bench).items() if "seed" in name}
    readers["optimizer"] = lambda seed: make("random_search", bench, seed=seed)
    for name, read in readers.items():
        for seed in (-1, 2**64 if name == "space seed" else 2**63, True, 1.0, "1"):
            with pytest.raises(JahsError):
                pytest.fail(f"{name} takes {read(seed)!r}")
        read(2**63 - 1)
        read(np.uint64(2**63 - 1))
