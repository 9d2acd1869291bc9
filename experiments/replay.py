"""Run an optimiser again from its code, with the terms and the seed of a log, and compare trial by trial.

A log alone does not reveal a search that was done off-line and replayed. The code does.
"""

from __future__ import annotations

import importlib.util
import inspect
import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from experiments.claims import settings_of, view_of
from jahs.errors import InvalidArgument, JahsError, OptimizerFailed, ProtocolMismatch
from jahs.queries.benchmark import Benchmark
from jahs.simulate import Log, Simulation, Trial, visible

__all__ = ["Factory", "read_factory", "replay"]

Factory = Callable[..., Any]  # Any: an optimiser
_RELATIVE: Final = 1e-5  # processors differ in the last bits of a float32
_EXACT: Final = ("trial", "config", "fidelity", "seed", "worker", "status")


def read_factory(named: str) -> Factory:
    """Return the class or function in `FILE.py:NAME`, a factory as in `experiments.optimizers`.

    Raises:
        InvalidArgument: there is no such file or name, the file raises, or the object is not callable.
    """
    path, _, name = named.rpartition(":")
    if not path.endswith(".py") or not name.isidentifier():
        raise InvalidArgument(f"rerun={named!r} must be FILE.py:NAME, as in mine.py:Climber")
    file = Path(path).resolve()
    spec = importlib.util.spec_from_file_location(f"rerun_{file.stem}", file)
    if not file.is_file() or spec is None or spec.loader is None:
        raise InvalidArgument(f"rerun={named}: {path} is not a file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    sys.path.insert(0, str(file.parent))
    try:
        spec.loader.exec_module(module)
    except Exception as err:
        raise InvalidArgument(f"rerun={named}: {path} raised {type(err).__name__}: {err}") from err
    finally:
        sys.path.remove(str(file.parent))
    factory = getattr(module, name, None)
    if not callable(factory):
        found = [key for key, it in vars(module).items() if getattr(it, "__module__", "") == spec.name and callable(it)]
        raise InvalidArgument(f"rerun={named}: {path} has no {name} to call; it has {', '.join(found) or 'nothing'}")
    return factory  # type: ignore[no-any-return]  # callable


def replay(factory: Factory, log: Log, bench: Benchmark) -> int:
    """Run the optimiser again and return the number of trials, which are all equal.

    Raises:
        ProtocolMismatch: a trial differs; names the first and the difference.
        OptimizerFailed: the factory or the optimiser raised, or proposed an invalid config.
    """
    view, settings = view_of(log.header, bench), settings_of(log.header)
    if settings.thinking == "measured":
        raise ProtocolMismatch("thinking='measured' depends on a machine's clock; such a run cannot be replayed")
    terms = {name: value for name, value in settings.facts().items() if name != "workers"}
    again: list[Trial] = []
    simulation = Simulation(view, settings.workers, **terms, metrics=_metrics(log.header))  # type: ignore[arg-type]  # as checked
    try:
        again = simulation.run(_make(factory, log.header, visible(view, _metrics(log.header)), settings.seed))
    except JahsError as err:
        raise OptimizerFailed(f"the rerun failed: {err}") from err
    for number, (said, found) in enumerate(zip(log.trials, again, strict=False)):
        if fault := _difference(said, found):
            raise ProtocolMismatch(f"the rerun differs in the {number + 1}. trial that ended, {said.trial}: {fault}")
    if len(again) != len(log.trials):
        raise ProtocolMismatch(f"the rerun has {len(again)} trials, the log {len(log.trials)}")
    return len(again)


def _make(factory: Factory, header: Mapping[str, Any], view: Any, seed: int) -> Any:  # Any: JSON; an optimiser
    """Make the optimiser with the log's settings; a factory gets the arguments that its signature has."""
    said = header.get("optimizer_settings")
    given = dict(said) if isinstance(said, Mapping) else {}
    offered: dict[str, Any] = {"objectives": tuple(given.pop("objectives", ()) or ("valid_acc",))}
    given.pop("seed", None)
    name = getattr(factory, "__name__", repr(factory))
    try:
        takes = inspect.signature(factory).parameters
        declared = getattr(sys.modules.get(getattr(factory, "__module__", "")), f"{name}Settings", None)
        if given and callable(declared):
            offered["settings"] = declared(**given)
        takes_all = any(each.kind is each.VAR_KEYWORD for each in takes.values())
        return factory(view, seed=seed, **{k: v for k, v in offered.items() if takes_all or k in takes})
    except Exception as err:
        raise OptimizerFailed(f"{name} raised {type(err).__name__}: {err}") from err


def _metrics(header: Mapping[str, Any]) -> tuple[str, ...] | None:  # Any: JSON
    said = header.get("metrics")
    return tuple(map(str, said)) if isinstance(said, list) else None


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
