"""What an import keeps of each finished model, so that it can be stopped and goes on where it was."""

from __future__ import annotations

import json
import zipfile
import zlib
from pathlib import Path

import numpy as np

from jahs.errors import JahsError
from jahs.files.atomic import write_beside
from jahs.models.bounds import BoundedTransform
from jahs.published.booster import Booster
from jahs.published.models import PublishedModel

__all__ = ["read_part", "write_part"]

_FORMAT = 1


def write_part(path: Path, models: dict[str, PublishedModel]) -> None:
    """Write the models of one file, by metric; whole or not at all."""
    facts = {
        name: {
            "columns": model.columns,
            "learner": model.booster.learner,
            "transform": None if model.transform is None else model.transform.to_dict(),
        }
        for name, model in models.items()
    }
    arrays = {
        f"{place}.{name}": values
        for place, model in enumerate(models.values())
        for name, values in {"n_nodes": model.booster.n_nodes, **model.booster.columns}.items()
    }
    content = json.dumps({"format": _FORMAT, "models": facts}).encode()
    with write_beside(path) as beside, beside.open("wb") as file:
        np.savez(file, facts=np.frombuffer(content, np.uint8), **arrays)  # type: ignore[arg-type]  # arrays by name


def read_part(path: Path) -> dict[str, PublishedModel] | None:
    """Return the models of a part; None if there is none, or it is not one (then it is made again)."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            content = json.loads(arrays["facts"].tobytes())
            if content["format"] != _FORMAT:
                return None
            return {
                name: PublishedModel(
                    tuple(facts["columns"]),
                    Booster(
                        facts["learner"],
                        arrays[f"{place}.n_nodes"],
                        {
                            column: arrays[f"{place}.{column}"]
                            for column in ("left_children", "right_children", "split_indices", "split_conditions")
                        },
                    ),
                    None if facts["transform"] is None else BoundedTransform.from_dict(facts["transform"]),
                )
                for place, (name, facts) in enumerate(content["models"].items())
            }
    except (OSError, EOFError, ValueError, KeyError, TypeError, JahsError, zipfile.BadZipFile, zlib.error):
        return None
