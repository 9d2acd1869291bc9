"""Merge folders of runs: their runs, configs, visits and proxies."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jahs.errors import CorruptFile, InvalidTable, ProtocolMismatch
from jahs.files.runs import (
    committed_faults,
    read_configs,
    read_profile,
    read_protocol,
    read_proxies,
    read_runs,
    read_visits,
)
from jahs.files.tables import Table
from pipeline.profile import merge_visits
from pipeline.proxies import merge_proxies
from pipeline.runs import RunsFolder
from pipeline.verify import REPRODUCED, each_run, profiled_by
from workshop.machine import ON_PROCESSOR

_log = logging.getLogger(__name__)
_DETERMINED: Final = (*REPRODUCED, "status")
_MOST_LISTED: Final = 20


def merge(path: Path, others: Sequence[Path]) -> tuple[int, int]:
    """Put the runs, the visits and the proxies of other folders into `path` and compact it.

    A run that several folders have is kept once, from the folder that is named first. The profile is then from the
    processor that visited the most configs; a warning says if this changes the processor.

    Returns:
        The number of runs in `path` now, and the number of duplicates that were left out.

    Raises:
        ProtocolMismatch, CorruptFile, InvalidTable: a folder holds another protocol, or cannot be read, or two folders
            have a run that differs although the same processor and torch trained it; nothing was changed.
    """
    folder = RunsFolder(path)
    if faults := [
        f"{root / fault}; restore the file from a copy" for root in (path, *others) for fault in committed_faults(root)
    ]:
        raise CorruptFile("\n".join(faults))
    for other in others:
        if (digest := read_protocol(other).digest) != folder.protocol:
            raise ProtocolMismatch(
                f"{other} has protocol {digest}, but {path} has {folder.protocol}; they cannot be merged"
            )
    parts = [(read_configs(other), each_run(read_runs(other)), read_visits(other)) for other in others]
    proxies = [read_proxies(other) for other in others]
    for read in (read_visits, read_profile, read_proxies):
        read(path)  # what cannot be read is refused before anything is changed
    _refuse_contradictions({path: each_run(read_runs(path))} | dict(zip(others, (r for _, r, _ in parts), strict=True)))
    for configs, _, _ in parts:
        folder.add_configs(configs)
    n_left_out = folder.compact([run for _, runs, _ in parts for run in runs])
    before = profiled_by(read_profile(path))
    merge_visits(path, [visits for _, _, visits in parts])
    merge_proxies(path, proxies)
    after = profiled_by(read_profile(path))
    if before and before != after:
        _log.warning("the profile and runtimes are now from %s, not from %s", ", ".join(after), ", ".join(before))
    return len(folder.recorded()), n_left_out


def _refuse_contradictions(folders: Mapping[Path, Sequence[Table]]) -> None:
    """Refuse different runs by the same processor and torch build: they must have the same bits, so one is wrong."""
    first: dict[tuple[object, ...], tuple[Path, Table]] = {}
    faults = []
    for folder, runs in folders.items():
        for run in runs:
            if run["device"][0] not in ON_PROCESSOR:
                continue
            key = tuple(run[name][0].item() for name in ("config_id", "seed", "machine", "torch_version"))
            where, known = first.setdefault(key, (folder, run))
            if known is not run and (differs := [name for name in _DETERMINED if not _is_same(known[name], run[name])]):
                faults.append(
                    f"config_id={key[0]:016x} seed={key[1]}: {where} and {folder} differ in {', '.join(differs)}, but "
                    f"{key[2]} with torch {key[3]} trained both"
                )
    if faults:
        more = [f"... {len(faults)} runs in all"] if len(faults) > _MOST_LISTED else []
        advice = "verify --retrain shows which folder is right; leave the other one out, or delete the run from it"
        raise InvalidTable("\n".join([*faults[:_MOST_LISTED], *more, advice]))


def _is_same(one: NDArray[Any], other: NDArray[Any]) -> bool:  # Any: each column has a type of its own
    return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
