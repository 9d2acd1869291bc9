"""Lists of configs to train besides the numbered stream, as JSON lines.

A line is a config, or {"config": {...}} with any of

    "seeds"     seeds of its trainings, [0] if not given
    "round"     number of the round of proposals, from 0
    "release"   digest of the release that proposed it
    "protocol"  digest of the protocol that it was proposed for
    "source"    name of the proposer
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from jahs.errors import InvalidArgument, InvalidConfig, MissingData, ProtocolMismatch, UnknownName, refuse
from jahs.files.strict_json import parse_json
from jahs.files.tables import Table, typed
from jahs.schema import CONFIG_KEYS, CONFIG_TABLE_COLUMNS, SOURCES
from jahs.spaces.columns import validate_columns
from jahs.spaces.configs import Config, config_id, validate
from jahs.spaces.parameters import show

_KEYS: Final = ("config", "seeds", "round", "release", "protocol", "source")
_LARGEST: Final = 2**31
_DIGEST: Final = re.compile(r"[0-9a-f]{8,64}|")


def read_proposals(path: Path, source: str, *, protocol: str) -> tuple[Table, list[list[int]]]:
    """Read a list of configs: their rows of the config table, and the seeds of each, in the order of the list.

    Args:
        source: name of the proposer, one of `jahs.schema.SOURCES`.
        protocol: digest of the protocol that they will be trained under.

    Raises:
        MissingData: there is no such file.
        UnknownName: there is no such source.
        ProtocolMismatch: a config was proposed for another protocol.
        InvalidArgument: nothing is listed, a config is listed twice, lines name several releases, or a line is
            invalid; every fault with the number of its line.
    """
    if source not in (proposers := [name for name in SOURCES if name != "uniform"]):  # "uniform" is the numbered stream
        raise UnknownName.of("source", source, proposers)
    try:
        lines = path.read_bytes().splitlines()
    except OSError as err:
        raise MissingData(f"{path} cannot be read: {err.strerror or err}; name a file with a config per line") from err
    faults: list[str] = []
    mismatches: list[str] = []
    first_line: dict[int, int] = {}
    proposer: tuple[str, int] | None = None  # the release that proposed the configs, and its first line
    configs: list[Config] = []
    contents: list[dict[str, Any]] = []  # Any: JSON
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            content = _content(line)
            config = validate(content["config"])
        except InvalidConfig as err:
            faults += [f"{path} line {number}: {fault}" for fault in err.faults]
            continue
        faults += [f"{path} line {number}: {fault}" for fault in _faults(content, source)]
        if content["protocol"] is not None and content["protocol"] != protocol:
            mismatches.append(f"line {number} for {show(content['protocol'])}")
        if (known := first_line.setdefault(config_id(config), number)) != number:
            faults.append(f"{path} line {number}: the config of line {known} again; list it once, with all its seeds")
        if isinstance(release := content["release"], str) and release:
            proposer = proposer or (release, number)
            if release != proposer[0]:
                faults.append(
                    f"{path} line {number}: release={show(release)}, but line {proposer[1]} has {show(proposer[0])}; "
                    "list what each release proposed in a file of its own"
                )
        configs.append(config)
        contents.append(content)
    refuse(*faults)
    if not configs:
        raise InvalidArgument(f"{path} lists no config; write one per line, as JSON")
    if mismatches:
        listed = ", ".join(mismatches[:3])
        raise ProtocolMismatch(
            f"{path}: {len(mismatches)} configs were proposed for another protocol than {protocol}: {listed}; "
            "train them with the task that they were proposed for"
        )
    rounds, releases = ([content[name] for content in contents] for name in ("round", "release"))
    table = table_of(configs, source=source, number=rounds, release=releases)
    return table, [content["seeds"] for content in contents]


def _content(line: bytes) -> dict[str, Any]:  # Any: JSON
    """Return the content of a line, with defaults filled in."""
    try:
        content = parse_json(line)
    except (ValueError, RecursionError) as err:
        raise InvalidConfig([f"is not JSON: {err}"]) from err
    if not isinstance(content, dict):
        raise InvalidConfig([f"{show(content)} is not an object of keys and values"])
    if "config" not in content:
        content = {"config": content}
    if unknown := [key for key in content if key not in _KEYS]:
        raise InvalidConfig([f"{', '.join(map(show, unknown))} is not one of the keys {', '.join(_KEYS)}"])
    if not isinstance(content["config"], dict):
        raise InvalidConfig([f"config={show(content['config'])} is not an object of 14 keys"])
    return {"seeds": [0], "round": 0, "release": "", "protocol": None, "source": None, **content}


def _faults(content: Mapping[str, Any], source: str) -> list[str]:  # Any: JSON
    faults = []
    seeds, number, release = content["seeds"], content["round"], content["release"]
    if not isinstance(seeds, list) or not seeds or not all(map(_is_count, seeds)) or len(set(seeds)) < len(seeds):
        faults.append(f"seeds={show(seeds)} is not a list of different integers >= 0")
    if not _is_count(number):
        faults.append(f"round={show(number)} is not an integer >= 0")
    if not isinstance(release, str) or not _DIGEST.fullmatch(release):
        faults.append(f"release={show(release)} is not a digest: 8 to 64 hex digits")
    if content["source"] is not None and content["source"] != source:
        faults.append(f"source={show(content['source'])}, but --source is {source!r}")
    return faults


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST


def table_of(
    configs: Sequence[Config], *, source: str, number: int | Sequence[int] = 0, release: str | Sequence[str] = ""
) -> Table:
    """Return the rows of the config table of proposed configs.

    Args:
        number: number of the round of proposals; one for all, or one for each.
        release: digest of the release that proposed them; one for all, or one for each.
    """
    columns = {
        **validate_columns({key: [config[key] for config in configs] for key in CONFIG_KEYS}),
        "config_id": np.array([config_id(config) for config in configs], np.uint64),
        "config_index": -1,
        "source": source,
        "round": number,
        "release": release,
    }
    return typed(columns, CONFIG_TABLE_COLUMNS)
