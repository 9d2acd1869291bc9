"""References to cite."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jahs.tasks.definitions import Task

_ENTRIES: Final = """\
The JAHS authors. JAHS: joint architecture and hyperparameter search on a laptop. Release: {release}.

Bansal, Stoll, Janowski, Zela, Hutter (2022). JAHS-Bench-201: A Foundation For Research On Joint Architecture And \
Hyperparameter Search. Advances in Neural Information Processing Systems 35, Datasets and Benchmarks Track.

Dong, Yang (2020). NAS-Bench-201: Extending the Scope of Reproducible Neural Architecture Search. International \
Conference on Learning Representations.

{images}"""


def citation(task: Task, facts: Mapping[str, Any]) -> str:  # Any: JSON
    """Return the references of a task, one a paragraph: the benchmark, the space, the cell, the images."""
    release = f"{task.name}, {facts.get('version', 'no release')}"
    return _ENTRIES.format(release=release, images=task.citation)
