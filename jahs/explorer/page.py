"""The page: the sources in `jahs/explorer/web`, joined with the facts and arrays of one release."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import jahs
from jahs.errors import InvalidArgument, ProtocolMismatch
from jahs.explorer.arrays import model_parts, pack_arrays, recorded_columns
from jahs.files.atomic import write_beside
from jahs.queries.oracles.opening import OracleRequest, open_oracle
from jahs.release import RecordedTable, Release, find_release, read_release
from jahs.release.find import full_path
from jahs.schema import SIZE_KEYS
from jahs.spaces.cell.drawing import LABELS
from jahs.spaces.cell.operations import EDGES, ZERO
from jahs.spaces.cell.paths import PATH_EDGES
from jahs.spaces.parameters import PARAMETERS
from jahs.spaces.space import STEP
from jahs.tasks.definitions import Task
from jahs.tasks.metrics import METRICS

MOST_NODES: Final = 600_000
"""Maximum number of nodes, over all forests, on a page of 4 MB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A release, or a folder of runs."""

    task: Task
    table: RecordedTable | None
    release: Release | None
    without_models: str | None  # reason why no predictions can be shown; None: there are models


def read_subject(task: str, release: Path | str | None = None) -> Subject:
    """Open the release of a task, or a folder of runs; ProtocolMismatch if it has another task."""
    folder = None if release is None else full_path(release)
    if folder is not None and (folder / "protocol.json").is_file():
        opened = open_oracle(OracleRequest(task=task, kind="table", engine="numpy", release=folder, save_dir=None))
        reason = "It is a folder of recorded runs, which has no models."
        return Subject(task=opened.oracle.task, table=opened.table, release=None, without_models=reason)
    content = read_release(find_release(task, folder))
    if content.task.name != task:
        raise ProtocolMismatch(f"{content.path} is a release of {content.task.name}, not of {task}")
    content.check_contents()
    table = content.table if content.has("table.npz") else None
    return Subject(task=content.task, table=table, release=content, without_models=_without_models(content))


def _without_models(release: Release) -> str | None:
    if not release.has("models.json") or not release.models.metrics:
        return "The release has no models."
    if release.models.costs != "exact":
        return "The release was imported: its models use rules that the page does not implement."
    n_nodes = sum(forest.n_nodes for forest in release.forests)
    if n_nodes > MOST_NODES:
        return f"The models have {n_nodes:,} nodes; at most {MOST_NODES:,} fit a page."
    return None


WEB: Final = Path(__file__).resolve().parent / "web"

MODULES: Final = (
    *("data", "model", "space", "draw", "cell", "curve", "neighbors"),
    *("filters", "parallel", "scatter", "recorded", "race", "app"),
)
"""The modules of the script, each after those that it imports."""

MOST_BYTES: Final = 4_000_000

_IMPORT: Final = re.compile(r"^import [^;]*;\n", re.MULTILINE)
_EXPORT: Final = re.compile(r"^export ", re.MULTILINE)


def join_modules(names: tuple[str, ...] = MODULES) -> str:
    """Return the modules as one script, in which names imported between them share one scope."""
    sources = [(WEB / f"{name}.js").read_text(encoding="utf-8") for name in names]
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", source)) for source in sources)


def make_page(subject: Subject) -> str:
    """Return the page as HTML; the same release gives the same text.

    InvalidArgument: it would have more than `MOST_BYTES`, or neither predictions nor recorded runs.
    """
    facts, blobs, features = _content(subject)
    script = "\n" + features + join_modules()
    parts = {
        "title": html.escape(f"{subject.task.title}: JAHS explorer"),
        "heading": html.escape(subject.task.title),
        "about": html.escape(_about(subject)),
        "caveat": _caveat(subject.task),
        "style": (WEB / "style.css").read_text(encoding="utf-8"),
        "facts": json.dumps(facts, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c"),
        "script": script,
        "script_hash": "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        **blobs,
    }
    template = (WEB / "page.html").read_text(encoding="utf-8")
    page = re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], template)
    if (n_bytes := len(page.encode())) > MOST_BYTES:
        raise InvalidArgument(
            f"the page of {subject.task.name} has {n_bytes:,} bytes; at most {MOST_BYTES:,} are allowed"
        )
    return page


def write_page(subject: Subject, path: Path) -> int:
    """Write the page, whole or not at all, and return its size in bytes."""
    data = make_page(subject).encode()
    with write_beside(path) as beside:
        beside.write_bytes(data)
    return len(data)


def _content(subject: Subject) -> tuple[dict[str, Any], dict[str, str], str]:  # Any: JSON
    """Return the facts, the arrays as text, and the feature script; InvalidArgument if there is nothing to show."""
    facts = _facts(subject)
    blobs = {"recorded": "", "models": ""}
    if subject.table is not None and (columns := recorded_columns(subject.table, subject.task)) is not None:
        facts["recorded"], arrays = columns
        facts["recorded"]["arrays"], blobs["recorded"] = pack_arrays(arrays, compressed=False)
    features = "const features = [];\n"
    if subject.release is not None and subject.without_models is None:
        facts["models"], arrays, features = model_parts(subject.release)
        facts["models"]["arrays"], blobs["models"] = pack_arrays(arrays, compressed=True)
    if facts["models"] is None and facts["recorded"] is None:
        raise InvalidArgument(
            f"{subject.task.name}: {subject.without_models} There are no finished runs to show instead; give another "
            "release"
        )
    return facts, blobs, features


def _about(subject: Subject) -> str:
    release = subject.release
    which = "recorded runs" if release is None else f"release {release.facts.get('version', release.sha256[:12])}"
    return f"{subject.task.name}, {which}, {subject.task.max_epoch} epochs, jahs {jahs.__version__}"


def _caveat(task: Task) -> str:
    """Return the caveat as HTML: its first two sentences, which unfold the rest."""
    if task.caveat is None:
        return ""
    sentences = re.split(r"(?<=\.) ", html.escape(task.caveat.replace("`", "")))
    first, rest = " ".join(sentences[:2]), " ".join(sentences[2:])
    return f'  <details id="caveat"><summary>{first}</summary><p>{rest}</p></details>'


def _facts(subject: Subject) -> dict[str, Any]:  # Any: JSON
    task, release = subject.task, subject.release
    reference = None if release is None else release.reference_config
    return {
        "task": {"name": task.name, "max_epoch": task.max_epoch},
        "without_models": subject.without_models,
        "models": None,
        "recorded": None,
        "release": None if release is None else release.sha256,
        "reference_config": None if reference is None else dict(reference),
        "units": {name: each.unit for name, each in METRICS.items()},
        **space_facts(),
    }


def space_facts() -> dict[str, Any]:  # Any: JSON
    """Return the facts of the space that the script needs."""
    return {
        "parameters": [
            {
                "name": each.name,
                "kind": each.kind,
                "type": type(each.default).__name__,
                "default": each.default,
                "choices": each.choices,
                "codes": each.codes,
                **({"lower": each.lower, "upper": each.upper} if each.kind == "float" else {}),
            }
            for each in PARAMETERS.values()
        ],
        "cell": {"edges": EDGES, "paths": PATH_EDGES, "labels": LABELS, "zero": ZERO},
        "sizes": SIZE_KEYS,
        "step": STEP,
    }
