"""Add the reference config to a release: a good cell and good rates, at which a view fixes what it does not search.

python -m surrogate.reference RUNS --split SPLIT --release RELEASE

`surrogate.release` writes it into the manifest of every release that it makes.
This command adds it to an older release, from the runs and the split of that release. No answer changes. So the third
part of the release's number moves, and the manifest names the one that it replaces as a release with the same answers.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, cast

import numpy as np

from jahs.errors import MissingData, ProtocolMismatch
from jahs.files.atomic import write_beside
from jahs.queries.views import SIZES
from jahs.release import RELEASE_FORMAT
from jahs.release.manifest import MANIFEST, Manifest, read_manifest, to_json
from jahs.spaces.columns import rows
from jahs.spaces.configs import Config
from splits.split import Split
from surrogate.command import runs_parser
from surrogate.data.measurements import Measurements, digest_measurements, read_with_split
from surrogate.data.rows import assemble, by_part
from surrogate.numbering import number_facts
from workshop.command import run_command

__all__ = ["add_reference", "main", "reference_config"]

_QUANTILE: Final = 0.9


def reference_config(measured: Measurements, split: Split) -> Config | None:
    """Return the validation config at the 0.9 quantile of validation accuracy, at full size; None if there is none.

    The validation configs that were trained to the last epoch are sorted by the mean of their validation accuracies
    there, ties by config id. The one at the quantile (nearest rank) is taken, so it is good, but not the best known.
    """
    recorded = by_part(assemble("valid_acc", measured), split)["valid"]
    last = recorded.take(recorded.epoch == measured.task.max_epoch)
    if not len(last):
        return None
    ids, place, counts = np.unique(last.config_id, return_inverse=True, return_counts=True)
    order = np.lexsort((ids, np.bincount(place, weights=last.y) / counts))
    chosen = ids[order[math.ceil(_QUANTILE * len(ids)) - 1]]
    is_chosen = measured.configs["config_id"] == chosen
    (config,) = rows({name: values[is_chosen] for name, values in measured.configs.items()})
    return cast("Config", {**config, **SIZES})


def add_reference(measured: Measurements, split: Split, release: Path) -> Manifest:
    """Write the reference config into the manifest of a release that was made from these runs and this split.

    Returns:
        The manifest, as it is now.

    Raises:
        ProtocolMismatch: the release was made from other runs or another split.
        MissingData: no validation config was trained to the last epoch.
    """
    old = read_manifest(release)
    made_from = {"measurements": digest_measurements(measured), "split": split.digest}
    if faults := [
        f"{name} must be {old.facts.get(name)!r}, got {digest!r}"
        for name, digest in made_from.items()
        if old.facts.get(name) != digest
    ]:
        raise ProtocolMismatch("\n".join([f"{release} was made from other data; make it again", *faults]))
    if (config := reference_config(measured, split)) is None:
        raise MissingData(f"no validation config was trained to epoch {measured.task.max_epoch}; collect more runs")
    if old.facts.get("reference_config") == config:
        return old
    files = {name: {"sha256": sha256, "size": size} for name, (size, sha256) in old.files.items()}
    facts = {**old.facts, "reference_config": config}
    facts |= number_facts(old, replace(old, facts=facts))
    with write_beside(release / MANIFEST) as beside:
        beside.write_bytes(to_json({**facts, "task": old.task, "format": RELEASE_FORMAT, "files": files}))
    return read_manifest(release)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 2 for a user's mistake."""
    parser = runs_parser("reference", __doc__, example="runs/ --split split.json --release release/")
    parser.add_argument("--release", type=Path, required=True, help="the release; its manifest is replaced")
    given = parser.parse_args(argv)

    def work() -> object:
        now = add_reference(*read_with_split(given.runs, given.split), given.release)
        return {"sha256": now.sha256, "version": now.facts["version"], "config": now.facts["reference_config"]}

    return run_command("surrogate.reference", work)


if __name__ == "__main__":
    sys.exit(main())
