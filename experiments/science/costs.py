"""Do recorded FLOPS order configs as exact ones do? Table 12 of JAHS-Bench-201, for any imported table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from jahs.comparison.logs import Floats
from jahs.comparison.summaries import number_text
from jahs.errors import InvalidArgument
from jahs.files.runs import read_configs, read_profile, read_protocol
from jahs.files.tables import read_table, rows_of
from jahs.models.cost import n_macs
from jahs.published.oddities import ODDITY_COLUMNS
from jahs.queries.exhaustive import LARGEST
from jahs.schema import CONFIG_KEYS
from jahs.spaces.columns import Columns
from jahs.spaces.encoding import encode
from jahs.tasks.definitions import TASKS, Task, task
from workshop.numbered import FIDELITY_GROUPS
from workshop.pages.document import Block, Table, Text
from workshop.ranks import kendall_tau

_TAUS: Final = (
    *(0.488, 0.744, 0.647, 0.624, 0.992, 0.991, 0.928, 0.983, 0.970),
    *(0.993, 0.989, 0.988, 0.792, 0.724, 0.733, 0.983, 0.900, 0.993),
    *(0.897, 0.987, 0.902, 0.900, 0.980, 0.657, 0.422, 0.961, 0.996),
)
PAPER: Final = dict(zip(FIDELITY_GROUPS, _TAUS, strict=True))
"""Table 12, on Colorectal-Histology, by (N, W, Resolution): recorded FLOPS and those of a second count."""

_PAPER_OVERALL: Final = 0.695729
_PAPER_TASK: Final = TASKS["colorectal_histology"].title


def costs_agreement(columns: Columns, recorded: Floats, task: Task) -> dict[tuple[object, ...] | None, float]:
    """Return Kendall's tau of recorded FLOPS and the exact multiply-adds, by (N, W, Resolution) and, by None, overall.

    It is NaN where a group has fewer than two configs.
    """
    exact = n_macs(encode(columns, 1), task)
    taus: dict[tuple[object, ...] | None, float] = {None: kendall_tau(recorded, exact)}
    for size in FIDELITY_GROUPS:
        is_in = np.logical_and.reduce([columns[key] == value for key, value in zip(LARGEST, size, strict=True)])
        taus[size] = kendall_tau(recorded[is_in], exact[is_in])
    return taus


def recorded_flops(folder: Path) -> tuple[Columns, Floats]:
    """Return the configs of an imported table's models and the FLOPS that were recorded for each, in millions.

    The import lists the labels that are not the exact ones; all others are exact. Labels that are NaN are left out.

    Raises:
        MissingData: the folder is not one of runs.
        InvalidArgument: its runs were not imported, so it has no recorded FLOPS.
    """
    facts = read_protocol(folder).facts
    if facts.get("source") is None:
        raise InvalidArgument(f"{folder} was not imported: its FLOPS are computed from the configs, so they are exact")
    odd = read_table(folder / "oddities.parquet", ODDITY_COLUMNS)
    profile = read_profile(folder)
    is_label = (odd["finding"] == "flops_label") & np.isin(odd["config_id"], profile["config_id"])
    ids, n_odd = np.unique(odd["config_id"][is_label], return_counts=True)
    n_exact = profile["n_repeats"].astype(np.int64)
    n_exact[np.searchsorted(profile["config_id"], ids)] -= n_odd
    exact_ids = np.repeat(profile["config_id"], np.maximum(n_exact, 0))
    configs = rows_of(read_configs(folder), np.concatenate([odd["config_id"][is_label], exact_ids]))
    columns: Columns = {key: configs[key] for key in CONFIG_KEYS}
    flops = n_macs(encode(columns, 1), task(facts["task"]["name"])) / 1e6
    flops[: is_label.sum()] = odd["value"][is_label]
    is_number = np.isfinite(flops)
    return {key: values[is_number] for key, values in columns.items()}, flops[is_number]


def costs_blocks(computed: Sequence[str], folders: Sequence[Path]) -> Iterator[str | Block]:
    """Yield the section on recorded FLOPS: titles of tasks that compute them, and a table for each imported folder."""
    yield "Recorded FLOPS beside exact ones"
    yield Text(
        f"JAHS-Bench-201 counted the FLOPS of {_PAPER_TASK} twice and reports a Kendall's tau between "
        f"{min(PAPER.values())} and {max(PAPER.values())} within the 27 fidelity groups, and {_PAPER_OVERALL:.3f} "
        f"overall (Table 12). On {' and '.join(computed)}, FLOPS are computed from the config, so tau is 1 in every "
        "group by construction. `--table FOLDER` adds an imported table."
    )
    for folder in folders:
        columns, flops = recorded_flops(folder)
        imported_task = task(read_protocol(folder).facts["task"]["name"])
        tau = costs_agreement(columns, flops, imported_task)
        sizes = np.array([columns[key].astype(np.float64) for key in LARGEST]).T
        rows = [
            (*map(str, size), str((sizes == size).all(axis=1).sum()), f"{PAPER[size]:.3f}", number_text(tau[size], 3))
            for size in FIDELITY_GROUPS
        ]
        overall = (*("all",) * len(LARGEST), str(len(flops)), f"{_PAPER_OVERALL:.3f}", number_text(tau[None], 3))
        yield Table(
            caption="Kendall's tau of recorded and exact FLOPS of the imported table of "
            f"{imported_task.title}; the paper's is of {_PAPER_TASK}",
            columns=(*LARGEST, "models", "paper", "ours"),
            rows=(overall, *rows),
            n_labels=len(LARGEST),
        )
