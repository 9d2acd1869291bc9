"""Writing a release: built beside, then renamed, so that it is whole or absent; the same input gives the same bytes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from jahs.errors import InvalidArgument
from jahs.files.atomic import change_folder, out_of_space
from jahs.files.hashing import sha256_file
from jahs.models.forest import Forest, save_forest, save_mapped_forest
from jahs.release.manifest import MANIFEST, RELEASE_FORMAT, to_json
from jahs.release.models import REFITS, Models, Refits
from jahs.release.reading import Release
from jahs.release.table import RecordedTable, write_table_npz
from jahs.tasks.definitions import task

if TYPE_CHECKING:
    from typing_extensions import Unpack  # only type checkers see it


class Parts(TypedDict, total=False):
    """The parts of a release, each in a file of its own."""

    models: Models  # models of all learned metrics; a pack whose file does not end in .npz becomes a mapped folder
    forests: Sequence[Forest]  # forests of each pack of `models`, in its order
    refits: Refits | None  # models fitted again, and facts about them
    refit_forests: Sequence[Forest]  # forests of each pack of `refits`, in its order
    families: Mapping[str, tuple[Models, Sequence[Forest]]]  # models for some metrics, with the forests of each pack
    noise: Mapping[str, Any] | None  # `NoiseModel.to_dict()`; Any: JSON, here and below
    table: RecordedTable | None
    references: Mapping[str, Any] | None
    quality: Mapping[str, Any] | None


def write_release(path: Path, *, manifest_facts: Mapping[str, Any], **parts: Unpack[Parts]) -> None:
    """Write a release folder; an older release there is replaced.

    Args:
        path: the folder, whose parent exists.
        manifest_facts: `task`, and version, source, protocol, seed, versions, commit, command.
        **parts: see `Parts`.

    InvalidArgument if the folder holds something else, UnknownName if there is no such task. Nothing is left behind on
    a full disk (OutOfSpace). Whether models and forests fit together is checked when the release is read.
    """
    if path.exists() and not (path / MANIFEST).is_file() and (not path.is_dir() or any(path.iterdir())):
        raise InvalidArgument(f"{path} exists and is not a release; choose another folder, or empty it")
    with out_of_space(path), change_folder(path) as beside:
        fill_release(beside, manifest_facts=manifest_facts, **parts)


def extend_release(release: Release, facts: Mapping[str, Any], **parts: Unpack[Parts]) -> None:
    """Add facts and parts to a complete release: written beside it, then put in its place.

    It is verified first, since the new manifest lists its files again; these are linked where possible. Facts are added
    to its manifest. Raises as `write_release`, and then the release is unchanged.
    """
    release.verify()
    with out_of_space(release.path), change_folder(release.path) as beside:
        for name in release.manifest.files:
            (beside / name).parent.mkdir(exist_ok=True)
            try:
                os.link(release.path / name, beside / name)
            except OSError:  # a file system without links
                shutil.copy2(release.path / name, beside / name)
        fill_release(beside, manifest_facts={**release.facts, **facts, "task": release.manifest.task}, **parts)


def fill_release(folder: Path, *, manifest_facts: Mapping[str, Any], **parts: Unpack[Parts]) -> None:
    """Write some parts of a release into a folder, and a manifest of every file in it; see `write_release`."""
    task_fact = {"task": task(manifest_facts["task"]).name}
    fitted: dict[str, tuple[Models | Refits, Sequence[Forest]]] = {
        f"{name}.json": family for name, family in parts.get("families", {}).items()
    }
    if (models := parts.get("models")) is not None:
        fitted["models.json"] = models, parts.get("forests", ())
    if (refits := parts.get("refits")) is not None:
        fitted[REFITS] = refits, parts.get("refit_forests", ())
    for name, (models_or_refits, forests) in fitted.items():
        _write(folder / name, models_or_refits.to_dict() | task_fact)
        for file, forest in zip([pack.file for pack in models_or_refits.packs], forests, strict=True):
            (save_forest if file.endswith(".npz") else save_mapped_forest)(forest, folder / file)
    for name in ("noise", "references", "quality"):
        if (content := parts.get(name)) is not None:
            _write(folder / f"{name}.json", content)
    if (table := parts.get("table")) is not None:
        write_table_npz(folder / "table.npz", table)
    names = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
    files = {
        n: {"sha256": sha256_file(folder / n), "size": (folder / n).stat().st_size} for n in names if n != MANIFEST
    }
    _write(folder / MANIFEST, {**manifest_facts, "format": RELEASE_FORMAT, "files": files})


def _write(path: Path, content: object) -> None:
    path.unlink(missing_ok=True)  # it may be a link to the file of another release, which keeps its bytes
    path.write_bytes(to_json(content))
