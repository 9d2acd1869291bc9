"""The final test set: configs at full size that influence no choice. They are in no part of a split.

    final_test.json        beside the split: its configs, sealed; written once
    final_test_reads.json  beside it: the purpose of each reading of their measurements, sealed

Kin of such a config, and configs that were trained as source `final`, are held out as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jahs.errors import CorruptFile, InvalidArgument, InvalidConfig
from jahs.files.sealed_json import read_sealed, sealed_text
from jahs.files.tables import Table
from jahs.schema import CONFIG_KEYS, FINAL_SOURCE
from jahs.spaces.columns import config_ids, validate_columns
from jahs.spaces.configs import Config, validate
from splits.kinship import kin
from workshop.folders import held_folder, write_text, writing

UNIFORM: Final = "uniform"  # the group of the configs that no optimiser proposed
_NAME: Final = "final_test.json"
_READS: Final = "final_test_reads.json"
_KEYS: Final = ("configs", "facts", "protocol", "seeds", "task")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FinalTest:
    """The members of a final test set."""

    # task, protocol: task and protocol of the trainings.
    task: str
    protocol: str
    configs: tuple[Config, ...]
    groups: tuple[str, ...]  # for each config `UNIFORM`, or the optimiser that proposed it
    seeds: tuple[int, ...]  # seeds that each config is trained with
    # Facts about the draw, as JSON.
    facts: Mapping[str, Any] = field(default_factory=dict)  # Any: JSON

    @property
    def config_ids(self) -> NDArray[np.uint64]:
        """The ids of the members, in the order of `configs`."""
        return config_ids(list(self.configs))

    @property
    def counts(self) -> dict[str, int]:
        """The number of members of each group."""
        return dict(Counter(self.groups))


def final_path(split: Path) -> Path:
    """Return the path of the final test set of a split."""
    return split.with_name(_NAME)


def final_beside(split: Path) -> FinalTest | None:
    """Read the final test set beside a split; None if none was frozen.

    Raises:
        CorruptFile, UnknownFormat: it was damaged or edited, or was written by another version.
    """
    path = final_path(split)
    if not path.exists():
        return None
    content = read_sealed(path)
    try:
        members = content["configs"]
        return FinalTest(
            configs=tuple(validate(member["config"]) for member in members),
            groups=tuple(str(member["group"]) for member in members),
            seeds=tuple(int(seed) for seed in content["seeds"]),
            **{key: content[key] for key in ("task", "protocol", "facts")},
        )
    except (KeyError, TypeError, ValueError, InvalidConfig) as err:
        raise CorruptFile(f"{path} must hold {', '.join(_KEYS)}: {err!r}; restore it from a copy") from err


def write_final(split: Path, final: FinalTest) -> Path:
    """Write a final test set beside a split, whole or not at all, and never over another one."""
    path = final_path(split)
    content = {
        "configs": [
            {"config": dict(config), "group": group} for config, group in zip(final.configs, final.groups, strict=True)
        ],
        "facts": dict(final.facts),
        "protocol": final.protocol,
        "seeds": list(final.seeds),
        "task": final.task,
    }
    with writing(path), held_folder(path.parent):
        if path.exists():
            raise InvalidArgument(f"{path} exists: a final test set is frozen once, and is never drawn again")
        write_text(path, sealed_text(content))
    return path


def is_final(configs: Table, final: FinalTest | None) -> NDArray[np.bool_]:
    """Return which rows of a config table are held out: members, their kin, and configs of source `final`."""
    n_rows = len(configs["config_id"])
    is_held_out = np.zeros(n_rows, dtype=np.bool_) if "source" not in configs else configs["source"] == FINAL_SOURCE
    if final is not None and final.configs and n_rows:
        final_columns = validate_columns({key: [config[key] for config in final.configs] for key in CONFIG_KEYS})
        columns = {key: np.concatenate([np.asarray(configs[key]), final_columns[key]]) for key in CONFIG_KEYS}
        families = kin({**columns, "config_id": np.concatenate([configs["config_id"], final.config_ids])})
        is_held_out = is_held_out | np.isin(families[:n_rows], families[n_rows:])
    return np.asarray(is_held_out, dtype=np.bool_)


def n_reads(split: Path) -> int:
    """Return the number of readings of the final test set beside a split."""
    return len(_reads(split.with_name(_READS)))


def count_read(split: Path, what_for: Mapping[str, object]) -> int:
    """Record a reading of the measurements of the final test set; return the number of readings so far.

    Raises:
        CorruptFile: the record was damaged or edited.
        InvalidArgument: it cannot be written, so nothing may be read.
    """
    path = split.with_name(_READS)
    with writing(path), held_folder(path.parent):
        reads = [*_reads(path), dict(what_for)]
        write_text(path, sealed_text({"reads": reads}))
    return len(reads)


def _reads(path: Path) -> Sequence[object]:
    if not path.exists():
        return []
    reads = read_sealed(path).get("reads")
    if not isinstance(reads, list):
        raise CorruptFile(f"{path} lists no reads; restore it from a copy")
    return reads
