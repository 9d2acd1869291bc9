"""One run of a comparison: an optimiser of JAHS or of a user's file, under the terms of a study, and its log."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from ast import literal_eval
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypeAlias

from jahs.comparison.terms import open_terms
from jahs.errors import CorruptFile, InvalidArgument, OptimizerFailed, ProtocolMismatch, UnknownFormat
from jahs.files.atomic import is_running, write_beside
from jahs.files.hashing import sha256_file
from jahs.optimizers import make
from jahs.simulate import Callback, Optimizer, Visible, visible
from jahs.simulate.log import read_header

RUN_AGAIN: Final = "remove it, and the same command runs this seed again"
"""What to do about a damaged log of a comparison."""

_SHA256: Final = 64  # hex digits

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


@contextmanager
def read_factory(named: str) -> Iterator[Factory]:
    """Yield the class or function in `FILE.py:NAME`, a factory or an optimiser in one function.

    Until the end, modules of its folder can be imported. Then they are forgotten: the next optimiser imports its own.
    """
    file, name = split_named(named)
    search_path, loaded = sys.path[:], set(sys.modules)
    sys.path.insert(0, str(file.parent))
    try:
        yield _execute(named, file, name)
    finally:
        sys.path[:] = search_path
        for top in {module.partition(".")[0] for module in sys.modules}.difference(loaded):
            if _is_of(file.parent, top):
                for module in [module for module in sys.modules if module.partition(".")[0] == top]:
                    del sys.modules[module]


def _execute(named: str, file: Path, name: str) -> Factory:
    path = named.rpartition(":")[0]
    spec = importlib.util.spec_from_file_location(f"optimizer_{file.stem}", file)
    assert spec is not None, "a .py file has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    try:
        # Not with the loader: it may use cached bytecode for a file that was edited within the same second.
        exec(compile(file.read_bytes(), str(file), "exec"), vars(module))  # noqa: S102  # the user's own code
    except Exception as err:
        raise InvalidArgument(f"{named}: {path} raised {type(err).__name__}: {err}") from err
    factory = getattr(module, name, None)
    if not callable(factory):
        names = [k for k, v in vars(module).items() if getattr(v, "__module__", "") == spec.name and callable(v)]
        raise InvalidArgument(f"{named}: {path} has no {name} to call; it has {', '.join(names) or 'nothing'}")
    return factory  # type: ignore[no-any-return]  # callable


def _is_of(folder: Path, name: str) -> bool:
    """Return whether a module is a file or package in a folder; packages of an environment inside it are not."""
    module = sys.modules.get(name)
    places = {*getattr(module, "__path__", ()), str(Path(getattr(module, "__file__", None) or "").parent)}
    return not places.isdisjoint({str(folder), str(folder / name)})


def make_optimizer(
    factory: Factory, view: Visible, *, seed: int, objectives: Sequence[str], settings: Mapping[str, object]
) -> Optimizer | Callback:
    """Return the optimiser of a factory, called with the arguments that its signature has.

    A function without a parameter `seed` or `view` is an optimiser itself: it gets the trials so far and returns the
    next config. `settings` are the arguments of `<name of the factory>Settings` in the same module; without any, a
    factory that requires settings gets the defaults. OptimizerFailed if the factory raises.
    """
    name = getattr(factory, "__name__", repr(factory))
    arguments: dict[str, Any] = {"seed": seed, "objectives": tuple(objectives)}  # Any: arguments of a factory
    try:
        params = inspect.signature(factory).parameters
        takes_any = any(each.kind is each.VAR_KEYWORD for each in params.values())
        if not (inspect.isclass(factory) or takes_any or "seed" in params or next(iter(params), None) == "view"):
            return factory
        settings_class = getattr(sys.modules.get(getattr(factory, "__module__", "")), f"{name}Settings", None)
        is_required = "settings" in params and params["settings"].default is inspect.Parameter.empty
        if (settings or is_required) and callable(settings_class):
            arguments["settings"] = settings_class(**settings)
        return factory(view, **{k: v for k, v in arguments.items() if takes_any or k in params})  # type: ignore[no-any-return]  # an optimiser
    except Exception as err:
        raise OptimizerFailed(f"{name} raised {type(err).__name__}: {err}") from err


def code_of(optimizer: str | Factory) -> str | None:
    """Return the sha256 of the file in FILE.py:NAME, or of the source of an object, its base classes and its defaults.

    None if the source is not available or does not determine the behaviour, as for lambdas, partials, instances,
    methods, decorated functions, functions or classes defined inside a function, and defaults that are not literals.
    """
    if isinstance(optimizer, str):
        return sha256_file(Path(optimizer.rpartition(":")[0]))
    is_whole = inspect.isfunction(optimizer) or inspect.isclass(optimizer)
    name = getattr(optimizer, "__qualname__", "")
    if not is_whole or getattr(optimizer, "__closure__", None) or "<" in name:  # <locals> or <lambda>
        return None
    defaults = repr([getattr(optimizer, each, None) for each in ("__defaults__", "__kwdefaults__")])
    try:
        literal_eval(defaults)
        sources = [_source_of(each) for each in getattr(optimizer, "__mro__", (optimizer, object))[:-1]]
    except (OSError, TypeError, ValueError, SyntaxError):
        return None
    return sha256(repr([name, defaults, sources]).encode()).hexdigest()


def _source_of(defined: Any) -> str:  # Any: a class or function
    """Return the digest of the file that defines a class or function, or its source in a notebook."""
    file = Path(inspect.getfile(defined))
    return sha256_file(file) if file.is_file() else inspect.getsource(defined)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Everything a process needs to make one log."""

    study: str
    task: str
    release: str | None  # a folder; None: found by `jahs`
    budget_s: float
    name: str  # label of the optimiser
    optimizer: str  # name in `jahs.optimizers`, or FILE.py:NAME
    code: str | None  # its sha256; None: unknown
    seed: int  # seed of optimiser, failures and noise
    log: str  # path of the log

    @property
    def facts(self) -> dict[str, Any]:  # Any: JSON
        """Entries of the log's header."""
        return {"study": self.study, "arm": self.name, "code": self.code}


def run(of: Run, factory: Factory | None = None) -> None:
    """Write the log, completely or not at all; without a `factory`, `of.optimizer` names the optimiser."""
    if factory is None and ":" in of.optimizer:
        if sha256_file(file := Path(of.optimizer.rpartition(":")[0])) != of.code:
            raise InvalidArgument(
                f"{file} has changed since the comparison began; choose another --out, or remove {Path(of.log).parent}"
            )
        with read_factory(of.optimizer) as read:
            run(of, read)
        return
    terms = open_terms(of.study, of.task, of.release, of.budget_s)
    view, objectives = visible(terms.view), terms.rules.objectives
    optimizer: Optimizer | Callback
    if factory is None:
        optimizer = make(of.optimizer, view, seed=of.seed, objectives=objectives)
    else:
        optimizer = make_optimizer(factory, view, seed=of.seed, objectives=objectives, settings={})
    target = Path(of.log)
    target.parent.mkdir(parents=True, exist_ok=True)
    with write_beside(target) as beside:
        for _ in terms.simulation(of.seed, log=beside, facts=of.facts).stream(optimizer):
            pass


def check_finished(of: Run, *, is_object: bool = False) -> bool:
    """Return whether the log exists; ProtocolMismatch names every difference of its terms or code.

    Args:
        is_object: whether the optimiser was given as an object. Without a known `code`, InvalidArgument refuses its
            log: it may be the log of another object of the same name.
    """
    log, folder = Path(of.log), Path(of.log).parent
    if not log.exists():
        return False
    if is_object and of.code is None:
        raise InvalidArgument(
            f"{log.parents[3]} has logs of {of.name}, whose code cannot be compared; choose another folder or remove "
            f"{folder}"
        )
    try:
        header = read_header(log)
    except (CorruptFile, UnknownFormat) as err:
        raise CorruptFile(f"{err}; {RUN_AGAIN}") from err
    release = open_terms(of.study, of.task, of.release, of.budget_s).release
    expected = {"release": release, "task": of.task, "budget": of.budget_s, "seed": of.seed, **of.facts}
    wrong = {name: value for name, value in expected.items() if header.get(name) != value}
    faults = [f"has {name}={_shown(header.get(name))}, not {_shown(wrong[name])}" for name in wrong if name != "code"]
    if "code" in wrong:
        faults.insert(0, f"was made by another version of {of.optimizer.rpartition(':')[0] or of.name}")
    if faults:
        raise ProtocolMismatch(f"{log} {'; it '.join(faults)}; choose another --out, or remove {folder} to run again")
    return True


def _shown(value: object) -> str:
    """Return a value of a header as text; of a digest the first 16 digits."""
    return value[:16] if isinstance(value, str) and len(value) == _SHA256 else repr(value)


def remove_parts(of: Run) -> None:
    """Remove partial files that killed processes left beside the log."""
    target = Path(of.log)
    for part in target.parent.glob(f".{target.name}.*.part"):
        pid = part.name.split(".")[-2]
        if pid.isdigit() and not is_running(int(pid)):
            part.unlink(missing_ok=True)
