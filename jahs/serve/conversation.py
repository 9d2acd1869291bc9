"""One run of a client: its requests, each a JSON object that is answered with a JSON object."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from os import SEEK_END
from pathlib import Path
from typing import Any, Final, TypeAlias

from jahs.comparison.terms import StudyTerms
from jahs.errors import (
    CorruptFile,
    InvalidArgument,
    InvalidConfig,
    InvalidFidelity,
    JahsError,
    OptimizerFailed,
    first_of,
)
from jahs.files.strict_json import parse_json
from jahs.release.find import full_path
from jahs.serve.spelling import BlindSpelling, Spelling
from jahs.simulate import Proposal, Trial, visible
from jahs.simulate.log import append_line, open_alone
from jahs.spaces.parameters import is_integer, show, show_key
from jahs.spaces.seeds import read_seed


class _Refused(InvalidArgument):
    """A request that cannot be carried out."""


class Journal:
    """An append-only file of the requests that change a run, one JSON object a line, written before it takes effect.

    It is named after the log; without a log, it starts empty. CorruptFile names a line that is not a request. A last
    line that was cut off is removed. `requests` are those in the file when it was opened.
    """

    def __init__(self, log: Path) -> None:
        path = log.with_name(f"{log.name}.requests")
        if log.exists() and not path.exists() and not (log.is_file() and log.stat().st_size == 0):
            raise InvalidArgument(f"log={log} exists, but {path.name} beside it does not; give a new path")
        self._path: Final = path
        self._file: Final = open_alone(path)
        *lines, _ = path.read_bytes().split(b"\n") if log.exists() else [b""]
        self._file.truncate(sum(len(line) + 1 for line in lines))
        try:
            self.requests: Final[list[dict[str, Any]]] = [parse_json(line) for line in lines]  # Any: JSON
        except json.JSONDecodeError as err:
            self.close()
            raise CorruptFile(f"{path} does not hold requests ({err}); remove it together with its log") from err

    @contextmanager
    def entry(self, request: Mapping[str, object]) -> Iterator[None]:
        """Append a request, and remove it if it is refused in this context.

        OutOfSpace or InvalidArgument if it cannot be written as a whole, _Refused if it is not JSON.
        """
        try:
            line = json.dumps(request, separators=(",", ":"), allow_nan=False)
        except (TypeError, ValueError, RecursionError) as err:
            raise _Refused(f"{show(request)} is not JSON: {err}") from err
        n_before = self._file.seek(0, SEEK_END)
        append_line(self._file, self._path, line.encode() + b"\n")
        try:
            yield
        except _Refused:
            self._file.truncate(n_before)
            raise

    def close(self) -> None:
        """Close the file."""
        self._file.close()


Reply: TypeAlias = dict[str, Any]  # Any: JSON

_VERBS: Final = ("space", "submit", "wait", "stop", "trials", "status", "end")
_ARGUMENTS: Final[Mapping[str, tuple[str, ...]]] = {"submit": ("config", "at", "reports"), "stop": ("trial",)}
_CHANGES: Final = ("submit", "wait", "stop", "end")


class Conversation:
    """A simulation under the terms of a study, driven by requests.

    Args:
        terms: the terms of the study.
        seed: seed of failures and of the training noise.
        client: the client's name, logged as the optimiser; not empty.
        log: the log, which is resumed; the requests are kept beside it in `<log>.requests`. None: no log.
        blind: seed of neutral names; None: the client reads the names of the space.

    Attributes:
        name: the server's name, which does not reveal the benchmark to a blind client.
        failure: why the run cannot go on; None if it can.

    Raises:
        InvalidArgument: `seed` or `blind` is not a seed, `client` is empty, or a file cannot be written.
        ProtocolMismatch: the log belongs to another run.
        CorruptFile: the log or the file of requests is damaged.
    """

    def __init__(
        self,
        terms: StudyTerms,
        *,
        seed: int = 0,
        client: str = "client",
        log: Path | None = None,
        blind: int | None = None,
    ) -> None:
        if not client:
            raise InvalidArgument("client='' is empty; give a name for the log")
        log = None if log is None else full_path(log)
        if log is not None and (not log.name or log.is_dir()):
            raise InvalidArgument(f"log={log} is a folder; give a file")
        view = visible(terms.view)
        spelling = Spelling(view) if blind is None else BlindSpelling(view, seed=read_seed(blind, name="blind"))
        self._spelling: Final = spelling
        self._terms: Final = terms
        self.name: Final = "jahs" if blind is None else "search"
        self._task: Final = terms.bench.task.name if blind is None else None
        facts: dict[str, object] = {"study": terms.study, "arm": client, "optimizer": client}
        if blind is not None:
            facts |= {"blind": blind, "optimizer_settings": {"blind": True}}
        self._simulation: Final = terms.simulation(seed, log=log, facts=facts)
        self._configs: Final[dict[int, object]] = {}  # configs as the client writes them, by trial
        self._running: Final[set[int]] = set()
        self._trials: Final[list[Reply]] = []
        self._journal = None if log is None else Journal(log)
        self.failure: JahsError | None = None
        try:
            if log is not None and log.exists() and log.stat().st_size:
                self._simulation.open_log()  # before a request of another run is refused, and so passed over
            for request in self._journal.requests if self._journal else ():
                with suppress(_Refused):
                    self._obey(_read(request))
        except BaseException:
            self.close()
            raise

    def answer(self, request: object) -> Reply:
        """Carry out a request and return the reply; a refused request gets "error" and changes nothing.

        JahsError, and for every later request the same one, if log or journal cannot be written or contradict the run:
        the files are closed, and the run can be resumed.
        """
        if self.failure is not None:
            raise self.failure
        echoed = {"id": request["id"]} if isinstance(request, Mapping) and "id" in request else {}
        try:
            command = _read(request)
            with self._journal.entry(command) if self._journal and command["do"] in _CHANGES else nullcontext():
                reply = self._obey(command)
        except _Refused as err:
            reply = {"error": str(err)}
        except JahsError as err:
            self.failure = err
            self.close()
            raise
        return {**echoed, **reply, **self._state()}

    def refuse(self, why: str) -> Reply:
        """Return the reply to a malformed request."""
        return {"error": why, **self._state()}

    def close(self) -> None:
        """Close the log and the journal; a run that was not over can be resumed."""
        self._simulation.close()
        if self._journal:
            self._journal.close()

    def __enter__(self) -> Conversation:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _state(self) -> Reply:
        simulation = self._simulation
        return {
            "clock": simulation.now,
            "budget": simulation.settings.budget,
            "free": simulation.n_free,
            "running": sorted(self._running),
            "over": simulation.ended,
        }

    def _obey(self, request: Reply) -> Reply:
        verb, arguments = request["do"], {key: value for key, value in request.items() if key != "do"}
        if verb in _CHANGES and self._simulation.ended:
            raise _Refused(f"the run is over ({self._simulation.ended}): trials returns its results")
        return getattr(self, f"_do_{verb}")(**arguments)  # type: ignore[no-any-return]  # one of those below

    def _do_space(self) -> Reply:
        rules, spelling, known = self._terms.rules, self._spelling, self._terms.view.metrics
        return {
            "task": self._task,
            "parameters": spelling.parameters(),
            "fidelities": {alias: list(spelling.levels[name]) for name, alias in spelling.fidelities.items()},
            "metrics": {
                alias: {"direction": known[name].direction, "objective": name in rules.objectives}
                for name, alias in spelling.metrics.items()
            },
            "workers": rules.workers,
        }

    def _do_submit(self, config: object = None, at: object = None, reports: object = ()) -> Reply:
        if not isinstance(config, Mapping):
            raise _Refused(f"config={show(config)} is not an object of keys and values; see space")
        if not self._simulation.n_free:
            raise _Refused("no worker is free; wait")
        try:
            proposal = Proposal(
                config=self._spelling.read_config(config),
                at=self._spelling.read_at(at),
                reports=reports,  # type: ignore[arg-type]  # the simulation checks it
            )
        except (InvalidConfig, InvalidFidelity) as err:
            raise _Refused(str(err)) from err
        try:
            number = self._simulation.submit(proposal)
        except OptimizerFailed as err:
            raise _Refused(self._spelling.explain(err)) from err
        self._configs[number] = dict(config)
        self._running.add(number)
        return {"trial": number}

    def _do_wait(self) -> Reply:
        if not self._running:
            raise _Refused("no trial runs: submit a config, or end the run")
        trials = self._simulation.wait()
        if not trials:  # the budget is spent
            trials = [trial for trial in self._simulation.trials() if trial.trial in self._running]
        replies = [self._show(trial) for trial in trials]
        if not self._running and not self._simulation.n_free:
            self._simulation.wait()
        return {"trials": replies}

    def _do_stop(self, trial: object = None) -> Reply:
        if not is_integer(trial) or trial not in self._running:
            raise _Refused(f"trial={show(trial)} does not run; see running")
        self._simulation.stop(int(trial))
        return {}

    def _do_trials(self) -> Reply:
        return {"trials": list(self._trials)}

    def _do_status(self) -> Reply:
        return {}

    def _do_end(self) -> Reply:
        """Wait for the running trials to end, and submit no more."""
        replies: list[Reply] = []
        while self._running:
            replies += self._do_wait()["trials"]
        if not self._simulation.ended:
            self._simulation.wait()
        return {"trials": [trial for trial in replies if trial["status"] != "running"]}

    def _show(self, trial: Trial) -> Reply:
        """Return a trial as the client reads it, and keep it if it has ended."""
        spelling, metrics = self._spelling, trial.metrics
        reply = {
            "trial": trial.trial,
            "status": trial.status,
            "config": self._configs[trial.trial],
            "at": spelling.show_fidelity(trial.fidelity),
            "metrics": {alias: metrics[name] for name, alias in spelling.metrics.items() if name in metrics},
            "start": trial.start,
            "end": trial.end,
        }
        if trial.status != "running":
            self._running.discard(trial.trial)
            self._trials.append(reply)
        return reply


def _read(request: object) -> Reply:
    """Return a request without its id; _Refused if it is invalid."""
    verbs = ", ".join(_VERBS)
    verb = request.get("do") if isinstance(request, Mapping) else None
    if not isinstance(request, Mapping) or not isinstance(verb, str) or verb not in _VERBS:
        raise _Refused(f'{show(request)} is not a request; write {{"do": VERB}}, where VERB is one of {verbs}')
    known = _ARGUMENTS.get(verb, ())
    if unknown := [show_key(key) for key in request if key not in {"id", "do", *known}]:
        raise _Refused(f"{verb} takes {', '.join(known) or 'no arguments'}, not {', '.join(first_of(unknown))}")
    return {key: value for key, value in request.items() if key != "id"}
