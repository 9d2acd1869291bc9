"""A user's own tasks: registered in this process, and recorded as facts in every file that is made for them.

Registered tasks are looked up by name, like built-in ones. A task file, the `protocol.json` of a folder of runs and the
manifest of a release each contain all facts of the task, and reading any of them registers it again.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from jahs.errors import CorruptFile, InvalidArgument, MissingData
from jahs.files.atomic import write_beside
from jahs.files.strict_json import check_format, parse_json
from jahs.spaces.parameters import show
from jahs.tasks.definitions import BUILT_IN, EARLIER, KNOWN, PROSE, TASKS, Task, task, type_faults

TASK_FORMAT: Final = 1
"""Version of the task file; a reader refuses any other."""

TASK_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
"""A legal name of a task, which also names folders."""

OPTIONAL: Final[Mapping[str, Any]] = {  # Any: values of a task's fields
    "epoch_images": None,
    "learning_rate_factor": 1.0,
    "learning_rate_power": 1.0,
    "keeps_decay": False,
    "random_crop": True,
    "operators": 1,
}
"""Facts that older protocols lack, with the values that apply there."""

_DIGEST: Final = re.compile(r"[0-9a-f]{16}")
_LARGEST_FILE: Final = 1 << 20


def register(given: Task | Path | str) -> Task:
    """Register a custom task under its name in this process, and return it.

    Args:
        given: a task, or a task file, as `python -m pipeline.define` writes it.

    Raises:
        MissingData: there is no such file, or `~` names a user who does not exist.
        CorruptFile, UnknownFormat: it is not a task file, or it has another version.
        InvalidArgument: the task is invalid, with every fault; or another task has its name, or all its facts.

    Example:
        >>> register(task("digits")).name
        'digits'
    """
    if isinstance(given, Task):
        return _register(task_facts(given))
    if not isinstance(given, str | os.PathLike) or "\0" in os.fspath(given):
        raise InvalidArgument(f"{show(given)} is neither a task nor the path of a task file")
    try:
        path = Path(given).expanduser()
    except RuntimeError as err:
        raise MissingData(f"{given}: there is no such user; write the path in full") from err
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise CorruptFile(f"{path} is too large for a task file; write one with `python -m pipeline.define`")
        content = parse_json(path.read_bytes())
    except OSError as err:
        raise MissingData(
            f"{path}: no task file can be read there ({err.strerror}); write one with `python -m pipeline.define`"
        ) from err
    except ValueError as err:
        raise CorruptFile(f"{path} is not a task file: {err}; write it again with `python -m pipeline.define`") from err
    if not isinstance(content, dict) or content.keys() != {"format", "task"}:
        raise CorruptFile(f"{path} must hold an object with format and task; write it with `python -m pipeline.define`")
    check_format(content["format"], TASK_FORMAT, of=str(path))
    try:
        return _register(content["task"])
    except InvalidArgument as err:
        raise InvalidArgument(f"{path}: {err}") from err


def write_task_file(path: Path, chosen: Task) -> None:
    """Write the facts of a task for `register`, whole or not at all."""
    with write_beside(path) as beside:
        content = {"format": TASK_FORMAT, "task": task_facts(chosen)}
        beside.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def recorded_as(chosen: Task) -> str | dict[str, Any]:  # Any: JSON
    """Return the record of a task in a file: its name if it equals a built-in task, otherwise all its facts."""
    is_built_in = chosen.name in BUILT_IN and chosen == TASKS[chosen.name]
    return chosen.name if is_built_in else task_facts(chosen)


def task_recorded_as(content: object, *, protocol: object = None) -> Task:
    """Return the task that a file names or describes; raises as `task` and `register`.

    A task that is not built in is registered. A built-in one may be described under an earlier protocol; its title,
    citation and caveat are the current ones, since a release is often judged after it was made. If it is only named,
    the digest `protocol` identifies an earlier protocol.
    """
    if (earlier := EARLIER.get(str(protocol))) is not None and content == earlier.name:
        return earlier
    if not isinstance(content, dict) or "name" not in content:
        return task(content)  # type: ignore[arg-type]  # `task` raises on anything but a name
    if not isinstance(content["name"], str):
        raise InvalidArgument(f"the name of a task must be a text, got {show(content['name'])}")
    if content["name"] not in BUILT_IN and {*PROSE} <= content.keys():
        return _register(content)
    facts = {key: value for key, value in content.items() if key not in PROSE}
    recorded = _task_of({**task_facts(task(content["name"])), **OPTIONAL, **facts})
    return next((each for each in EARLIER.values() if _protocol_facts(each) == _protocol_facts(recorded)), recorded)


def task_of_protocol(facts: Mapping[str, Any]) -> Task:  # Any: JSON
    """Return the task of a recorded protocol; raises as `task_recorded_as`."""
    recorded, training = facts.get("task"), facts.get("training")
    if isinstance(recorded, dict) and isinstance(training, dict) and "batch_size" in training:
        recorded = {**recorded, "batch_size": training["batch_size"]}
    return task_recorded_as(recorded)


def task_facts(chosen: Task) -> dict[str, Any]:  # Any: fields of a Task
    """Return the fields of a task as JSON holds them."""
    return {key: [*value] if isinstance(value, tuple) else value for key, value in dataclasses.asdict(chosen).items()}


def _register(facts: object) -> Task:
    new = _task_of(facts)
    for known in TASKS.values():
        if differing := [name for name, value in _protocol_facts(new).items() if _protocol_facts(known)[name] != value]:
            if known.name == new.name:
                raise InvalidArgument(
                    f"task {new.name!r} exists already and differs in {', '.join(differing)}; choose another name"
                )
        elif known.name == new.name:
            return known
        else:
            raise InvalidArgument(f"task {new.name!r} is task {known.name!r} under another name; use that one")
    KNOWN[new.name] = new
    return new


def _protocol_facts(chosen: Task) -> dict[str, Any]:  # Any: fields of a Task
    """Return the facts that affect measurements: all except name and prose."""
    return {key: value for key, value in task_facts(chosen).items() if key not in ("name", *PROSE)}


def _task_of(facts: object) -> Task:
    """Build a task from untrusted facts."""
    is_required = {field.name: field.default is dataclasses.MISSING for field in dataclasses.fields(Task)}
    if not isinstance(facts, dict):
        raise InvalidArgument(f"a task must be an object with the fields {', '.join(is_required)}; got {show(facts)}")
    faults = [f"{show(key)} is not a field of a task" for key in facts if key not in is_required]
    faults += [f"{name} is missing" for name in is_required if is_required[name] and name not in facts]
    faults += type_faults(facts).values()
    if faults:
        raise InvalidArgument("\n".join(["a task is invalid:", *faults]))
    candidate = Task(**facts)
    if faults := _faults(candidate):
        raise InvalidArgument("\n".join(f"task {candidate.name!r}: {fault}" for fault in faults))
    return candidate


def _faults(candidate: Task) -> list[str]:
    """Return the faults of a user's own task."""
    faults = [
        f"{key}={show(value)} must be a small letter, then up to 63 small letters, digits and _; it names a folder"
        for key in ("name", "data_set")
        if not TASK_NAME.fullmatch(value := getattr(candidate, key))
    ]
    if candidate.n_channels not in {1, 3}:
        faults.append(f"n_channels={candidate.n_channels} must be 1 (grey) or 3 (colour)")
    if candidate.n_classes < 2:
        faults.append(f"n_classes={candidate.n_classes} must be at least 2")
    if candidate.operators not in {1, 2}:
        faults.append(f"operators={candidate.operators} must be 1 or 2")
    faults += [
        f"{name} has {len(values)} values for {candidate.n_channels} channels"
        for name in ("mean", "std")
        if (values := getattr(candidate, name)) is not None and len(values) != candidate.n_channels
    ]
    if candidate.std is not None and 0 in candidate.std:
        faults.append("std must be above 0 in every channel")
    if candidate.name not in BUILT_IN and not _DIGEST.fullmatch(candidate.index_digest or ""):
        faults.append(
            f"index_digest={show(candidate.index_digest)} must be the 16 hex digits of the split of the images; "
            "`python -m pipeline.define` computes it"
        )
    return faults
