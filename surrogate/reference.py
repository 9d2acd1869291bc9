"""Add the reference config to a release: a good cell and good rates, at which a view fixes what it does not search.

python -m surrogate.reference RUNS --split SPLIT --release RELEASE

`surrogate.release` writes it into the manifest of every release that it makes.
This command adds it to an older release, from the runs and the split of that release. No answer changes. So the third
part of the release's number moves, and the manifest names the one that it replaces as a release with the same answers.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from jahs.errors import MissingData
from jahs.files.tables import take
from jahs.queries.completing import good_config
from jahs.release.manifest import Manifest, read_manifest
from jahs.release.writing import extend_release
from jahs.spaces.configs import Config
from splits.split import Split
from surrogate.command import runs_parser
from surrogate.data.measurements import Measurements, read_with_split
from surrogate.data.rows import assemble, by_part
from surrogate.numbering import number_facts, read_made_from
from workshop.command import run_command

__all__ = ["add_reference", "main", "reference_config"]


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
    order = np.argsort(measured.configs["config_id"])
    configs = take(measured.configs, order[np.searchsorted(measured.configs["config_id"], ids, sorter=order)])
    return good_config(configs, np.bincount(place, weights=last.y) / counts)


def add_reference(measured: Measurements, split: Split, release: Path) -> Manifest:
    """Write the reference config into the manifest of a release that was made from these runs and this split.

    Returns:
        The manifest, as it is now.

    Raises:
        ProtocolMismatch: the release was made from other runs or another split.
        MissingData: no validation config was trained to the last epoch.
    """
    found = read_made_from(release, measured, split)
    old = found.manifest
    if (config := reference_config(measured, split)) is None:
        raise MissingData(f"no validation config was trained to epoch {measured.task.max_epoch}; collect more runs")
    if old.facts.get("reference_config") == config:
        return old
    facts = {"reference_config": config}
    facts |= number_facts(old, replace(old, facts={**old.facts, **facts}))
    extend_release(found, facts)
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
