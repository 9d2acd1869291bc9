"""Run an optimiser again from its code, with the terms and the seed of a log, and compare trial by trial.

A log alone does not reveal a search that was done off-line and replayed. The code does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from jahs.comparison.claims import settings_of, view_of
from jahs.comparison.runs import Factory, make_optimizer
from jahs.errors import JahsError, OptimizerFailed, ProtocolMismatch
from jahs.queries.benchmark import Benchmark
from jahs.simulate import Callback, Log, Optimizer, Simulation, Trial, Visible, visible

__all__ = ["replay"]

_RELATIVE: Final = 1e-5  # processors differ in the last bits of a float32
_EXACT: Final = ("trial", "config", "fidelity", "seed", "worker", "status")


def replay(factory: Factory, log: Log, bench: Benchmark) -> int:
    """Run the optimiser again and return the number of trials, which are all equal.

    ProtocolMismatch names the first difference; OptimizerFailed if the factory or the optimiser raised.
    """
    view, settings = view_of(log.header, bench), settings_of(log.header)
    if settings.thinking == "measured":
        raise ProtocolMismatch("thinking='measured' depends on a machine's clock; such a run cannot be replayed")
    terms = {name: value for name, value in settings.facts().items() if name != "workers"}
    again: list[Trial] = []
    said = log.header.get("metrics")
    metrics = tuple(map(str, said)) if isinstance(said, list) else None
    simulation = Simulation(view, settings.workers, **terms, metrics=metrics)  # type: ignore[arg-type]  # as checked
    try:
        again = simulation.run(_make(factory, log.header, visible(view, metrics), settings.seed))
    except JahsError as err:
        raise OptimizerFailed(f"the rerun failed: {err}") from err
    for number, (said, found) in enumerate(zip(log.trials, again, strict=False)):
        if fault := _difference(said, found):
            raise ProtocolMismatch(f"the rerun differs in the {number + 1}. trial that ended, {said.trial}: {fault}")
    if len(again) != len(log.trials):
        raise ProtocolMismatch(f"the rerun has {len(again)} trials, the log {len(log.trials)}")
    return len(again)


def _make(factory: Factory, header: Mapping[str, Any], view: Visible, seed: int) -> Optimizer | Callback:  # Any: JSON
    """Make the optimiser with the log's settings."""
    said = header.get("optimizer_settings")
    given = dict(said) if isinstance(said, Mapping) else {}
    objectives = tuple(given.pop("objectives", ()) or ("valid_acc",))
    return make_optimizer(factory, view, seed=seed, objectives=objectives, settings=given)


def _difference(said: Trial, found: Trial) -> str | None:
    for name in _EXACT:
        one, other = getattr(said, name), getattr(found, name)
        if one != other:
            if name == "config":
                return "; ".join(
                    f"the log says {key}={one[key]!r}, the rerun {other[key]!r}"
                    for key in one
                    if one[key] != other[key]
                )
            return f"the log says {name}={one!r}, the rerun {other!r}"
    numbers = {"start": (said.start, found.start), "end": (said.end, found.end)}
    numbers |= {name: (said.metrics.get(name, math.nan), value) for name, value in found.metrics.items()}
    for name, (number, again) in numbers.items():
        if not math.isclose(number, again, rel_tol=_RELATIVE, abs_tol=_RELATIVE):
            return f"the log says {name}={number!r}, the rerun {again!r}"
    return None
