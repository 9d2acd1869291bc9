"""One run of a comparison: an optimiser under the terms of a study with one seed, and its log."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from jahs.comparison.factories import Factory, make_optimizer, read_factory
from jahs.comparison.terms import StudyTerms, open_terms
from jahs.errors import ProtocolMismatch
from jahs.files.atomic import is_running, write_beside
from jahs.optimizers import make
from jahs.simulate import Callback, Optimizer, Visible, visible
from jahs.simulate.log import read_header

__all__ = ["Run", "check_finished", "code_of", "remove_parts", "run"]


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
    seed: int  # of optimiser, failures and noise
    log: str  # the file

    def to_json(self) -> str:
        """Return the run as one line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str) -> Run:
        """Return the run of a line from `to_json`."""
        return cls(**json.loads(line))

    @property
    def facts(self) -> dict[str, Any]:  # Any: JSON
        """Entries of the log's header."""
        return {"study": self.study, "arm": self.name, "code": self.code}


def run(of: Run, factory: Factory | None = None) -> None:
    """Write the log, completely or not at all; without a `factory`, the optimiser is found by its name."""
    terms = _terms_of(of)
    visible_ = visible(terms.view)
    optimizer = _maker(of, factory)(visible_, seed=of.seed, objectives=terms.rules.objectives)
    target = Path(of.log)
    target.parent.mkdir(parents=True, exist_ok=True)
    with write_beside(target) as beside:
        for _ in terms.simulation(of.seed, log=beside, facts=of.facts).stream(optimizer):
            pass


def check_finished(of: Run) -> bool:
    """Return whether the log exists; ProtocolMismatch names every difference of its terms or code."""
    if not Path(of.log).exists():
        return False
    header = read_header(of.log)
    wanted = {"release": _terms_of(of).release, "task": of.task, "budget": of.budget_s, "seed": of.seed, **of.facts}
    faults = [
        f"{name}={header.get(name)!r}, not {value!r}" for name, value in wanted.items() if header.get(name) != value
    ]
    if faults:
        raise ProtocolMismatch(
            f"{of.log} has {'; '.join(faults)}, so it cannot be continued; choose another folder, or remove this log"
        )
    return True


def code_of(optimizer: str) -> str | None:
    """Return the sha256 of the file in FILE.py:NAME; None for an optimiser of `jahs.optimizers`."""
    file = Path(optimizer.rpartition(":")[0])
    return sha256(file.read_bytes()).hexdigest() if file.is_file() else None


def remove_parts(of: Run) -> None:
    """Remove what killed processes have left beside the log."""
    target = Path(of.log)
    for part in target.parent.glob(f".{target.name}.*.part"):
        pid = part.name.split(".")[-2]
        if pid.isdigit() and not is_running(int(pid)):
            part.unlink(missing_ok=True)


def _terms_of(of: Run) -> StudyTerms:
    return open_terms(of.study, of.task, None if of.release is None else Path(of.release), of.budget_s)


def _maker(of: Run, factory: Factory | None) -> Callable[..., Optimizer | Callback]:
    if factory is None and ":" not in of.optimizer:
        return partial(make, of.optimizer)
    found = factory or read_factory(of.optimizer)

    def made(view: Visible, *, seed: int, objectives: tuple[str, ...]) -> Optimizer | Callback:
        return make_optimizer(found, view, seed=seed, objectives=objectives, settings={})

    return made
