"""Optimisers from anybody's code: factories, and functions of the trials so far."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from jahs.errors import InvalidArgument, OptimizerFailed
from jahs.simulate import Callback, Optimizer, Visible

__all__ = ["Factory", "make_optimizer", "read_factory", "split_named"]

Factory: TypeAlias = Callable[..., Any]  # Any: an optimiser
"""Makes an optimiser when it is called as `factory(view, seed=...)`; or is an optimiser itself, a `Callback`."""


def split_named(named: str) -> tuple[Path, str]:
    """Return the file, resolved, and the name in `FILE.py:NAME`; InvalidArgument if there is no such file."""
    path, _, name = named.rpartition(":")
    if not path.endswith(".py") or not name.isidentifier():
        raise InvalidArgument(f"{named!r} must be FILE.py:NAME, as in mine.py:Climber")
    if not Path(path).is_file():
        raise InvalidArgument(f"{named}: {path} is not a file")
    return Path(path).resolve(), name


def read_factory(named: str) -> Factory:
    """Return the class or function in `FILE.py:NAME`, a factory or an optimiser in one function."""
    file, name = split_named(named)
    path = named.rpartition(":")[0]
    spec = importlib.util.spec_from_file_location(f"optimizer_{file.stem}", file)
    assert spec is not None, "a .py file has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    sys.path.insert(0, str(file.parent))
    try:
        # Not by the loader: it may take cached bytecode for a file that was edited within the same second.
        exec(compile(file.read_bytes(), str(file), "exec"), vars(module))  # noqa: S102  # the user's own code
    except Exception as err:
        raise InvalidArgument(f"{named}: {path} raised {type(err).__name__}: {err}") from err
    finally:
        sys.path.remove(str(file.parent))
    factory = getattr(module, name, None)
    if not callable(factory):
        found = [key for key, it in vars(module).items() if getattr(it, "__module__", "") == spec.name and callable(it)]
        raise InvalidArgument(f"{named}: {path} has no {name} to call; it has {', '.join(found) or 'nothing'}")
    return factory  # type: ignore[no-any-return]  # callable


def make_optimizer(
    factory: Factory, view: Visible, *, seed: int, objectives: Sequence[str], settings: Mapping[str, object]
) -> Optimizer | Callback:
    """Return the optimiser of a factory, which gets those arguments that its signature has.

    A function without a parameter `seed` is an optimiser itself: it gets the trials so far and returns the next config.
    `settings` are values for `<name of the factory>Settings` in the same module. OptimizerFailed if the factory raises.
    """
    name = getattr(factory, "__name__", repr(factory))
    offered: dict[str, Any] = {"objectives": tuple(objectives)}  # Any: what a factory takes
    given = {key: value for key, value in settings.items() if key != "seed"}
    try:
        takes = inspect.signature(factory).parameters
        takes_all = any(each.kind is each.VAR_KEYWORD for each in takes.values())
        if not (inspect.isclass(factory) or takes_all or "seed" in takes):
            return factory
        declared = getattr(sys.modules.get(getattr(factory, "__module__", "")), f"{name}Settings", None)
        if given and callable(declared):
            offered["settings"] = declared(**given)
        return factory(view, seed=seed, **{k: v for k, v in offered.items() if takes_all or k in takes})  # type: ignore[no-any-return]  # an optimiser
    except Exception as err:
        raise OptimizerFailed(f"{name} raised {type(err).__name__}: {err}") from err
