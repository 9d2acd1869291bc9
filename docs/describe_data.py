"""Describe the recorded data for others: `make datasheet` after every change of data or releases; it takes seconds.

data/<task>/croissant.json   what each file and column is, in Croissant's vocabulary with its responsible-AI terms
data/SHA256SUMS              a checksum of every file: `sha256sum --check data/SHA256SUMS` in the root of the repository
docs/datasheet.md            the generated table of the datasheet: counts, cost and energy
"""

from __future__ import annotations

import argparse
import json
import os
import re
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from jahs.files.runs import read_configs, read_runs, run_shards
from jahs.release import EMBEDDED
from jahs.tasks.definitions import TASKS
from workshop.measured import last_rows, without_final

ROOT = Path(__file__).resolve().parent.parent
DATA, SHEET, SUMS = ROOT / "data", ROOT / "docs" / "datasheet.md", ROOT / "data" / "SHA256SUMS"

WATTS_PER_CORE = 10.0
BEGIN, END = "<!-- begin: make datasheet -->\n", "<!-- end -->\n"

FORMATS = {
    ".parquet": "application/x-parquet",
    ".json": "application/json",
    ".npz": "application/zip",
    ".jsonl": "application/jsonl",
}
TYPES = {"int": "sc:Integer", "uint": "sc:Integer", "float": "sc:Float", "string": "sc:Text", "bool": "sc:Boolean"}

# The context that Croissant 1.0 prescribes.
TERMS = """citeAs column equivalentProperty extract field fileObject fileProperty fileSet format includes isLiveDataset
    jsonPath key md5 parentField path recordSet references regex repeated replace samplingRate separator source subField
    transform"""
CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
    **{term: f"cr:{term}" for term in TERMS.split()},
}

RESPONSIBLE = {
    "rai:dataCollection": "Configs are drawn from a numbered stream of uniform random configs, with equal shares of "
    "27 fidelity groups (N, W, Resolution), or proposed by a model (column `source`). Each is trained on one CPU core "
    "or on a GPU (column `device`) under a frozen protocol, some with several seeds, and measured after every epoch.",
    "rai:dataBiases": "Times were measured on few processors, for training on CPUs. The split of the images is one "
    "draw. Configs whose source is not `uniform` were chosen because a model expected them to be good or informative: "
    "leave them out of statistics of the space, or weight them.",
    "rai:dataLimitations": "Training is short and images are small: rankings need not carry over to full training. "
    "Single trainings are noisy. Times on different processors do not compare.",
    "rai:dataUseCases": "Developing and comparing methods of hyperparameter optimisation and neural architecture "
    "search, fitting surrogates, studying learning curves and training noise. Not for choosing networks for use.",
    "rai:dataSocialImpact": "Research on these records needs a laptop instead of a cluster, which saves energy. They "
    "concern small image classifiers; no risk is known beyond the general ones of such research.",
    "rai:dataReleaseMaintenancePlan": "Trainings are added and none is changed. Releases have numbers and digests "
    "(docs/versions.md); the datasheet has the plan (docs/datasheet.md).",
}


def digest(path: Path) -> str:
    """Return a file's sha256."""
    return sha256(path.read_bytes()).hexdigest()


def files_of(task: str) -> list[Path]:
    """Return the files of a task: measurements, derived files and the release."""
    paths = [*(DATA / task).rglob("*"), *(ROOT / "jahs" / "releases" / task).rglob("*")]
    return sorted(path for path in paths if path.is_file() and path.suffix in FORMATS and path.name != "croissant.json")


def tasks() -> list[str]:
    """Return the tasks that are recorded here and have an embedded release."""
    return sorted(task for task in EMBEDDED if (DATA / task / "runs").is_dir())


def meanings() -> dict[str, dict[str, tuple[str, str]]]:
    """Return the type and the meaning of each Parquet file's columns, from the page of file formats."""
    columns: dict[str, dict[str, tuple[str, str]]] = {}
    file = ""
    for line in (ROOT / "docs" / "formats.md").read_text(encoding="utf-8").splitlines():
        if heading := re.fullmatch(r"#+ (\w+)(\.parquet)?", line):
            file = heading[1]
        elif row := re.fullmatch(r"\| `(\w+)` \| ([a-z]+)\d* \|(.*)\| (.+) \|", line):
            unit = f" ({row[3].strip()})" if row[3].strip() else ""
            meaning = re.sub(r"\]\([^)]*\)|[\[`]", "", row[4])  # without links and code marks
            columns.setdefault(file, {})[row[1]] = TYPES.get(row[2], ""), meaning + unit
    return columns


def record_set(path: Path, name: str, columns: dict[str, tuple[str, str]]) -> dict[str, Any]:
    """Return the record set of a Parquet file, each column a field with its type and meaning."""
    fields = []
    for column in pq.read_schema(path).names:
        kind, meaning = columns[column]
        source = {"fileObject": {"@id": path.relative_to(ROOT).as_posix()}, "extract": {"column": column}}
        field = {"@type": "cr:Field", "@id": f"{name}/{column}", "name": column, "description": meaning}
        fields.append({**field, "dataType": kind, "source": source})
    return {"@type": "cr:RecordSet", "@id": name, "name": name, "field": fields}


def croissant(task: str) -> dict[str, Any]:
    """Return a task's metadata."""
    manifest = json.loads((ROOT / "jahs" / "releases" / task / "manifest.json").read_text(encoding="utf-8"))
    released = re.search(r"^date-released: (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    title, caveat = TASKS[task].title, TASKS[task].caveat or ""
    tables = [path for path in files_of(task) if path.suffix == ".parquet"]
    shards, columns = run_shards(DATA / task / "runs"), meanings()
    distribution = [
        {
            "@type": "cr:FileObject",
            "@id": path.relative_to(ROOT).as_posix(),
            "name": path.relative_to(ROOT).as_posix(),
            "contentUrl": Path(os.path.relpath(path, DATA / task)).as_posix(),
            "contentSize": f"{path.stat().st_size} B",
            "encodingFormat": FORMATS[path.suffix],
            "sha256": digest(path),
        }
        for path in files_of(task)
    ]
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "name": f"jahs_{task}",
        "description": f"Recorded trainings of joint architecture and hyperparameter configs on {title}, their split, "
        "and the surrogate release that was fitted to them.",
        "conformsTo": ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"],
        "license": "https://creativecommons.org/licenses/by/4.0/",
        "creator": {"@type": "sc:Organization", "name": "The JAHS authors"},
        "version": manifest["version"],
        "citeAs": f"The JAHS authors. JAHS: joint architecture and hyperparameter search on a laptop. Release: {task}, "
        f"{manifest['version']}.",
        **({"datePublished": released[1]} if released else {}),
        "isLiveDataset": True,
        "keywords": ["AutoML", "neural architecture search", "hyperparameter optimization", "learning curves"],
        **RESPONSIBLE,
        "rai:dataLimitations": f"{RESPONSIBLE['rai:dataLimitations']} {caveat}".strip(),
        "rai:personalSensitiveInformation": f"None: no image is included. Their source: {TASKS[task].citation}",
        "distribution": distribution,
        "recordSet": [
            record_set(
                path, "runs" if shards == [path] else path.stem, columns["runs" if path in shards else path.stem]
            )
            for path in tables
        ],
    }


def costs(task: str) -> dict[str, Any]:
    """Return a task's counts, and the core-hours of CPUs by processor; the final test set is counted apart."""
    folder = DATA / task / "runs"
    runs, n_final = without_final(read_runs(folder), read_configs(folder))
    last = last_rows(runs)
    hours = np.nan_to_num(last["runtime"].astype(np.float64)) / 3600
    return {
        "configs": len(np.unique(last["config_id"])),
        "trainings": len(last["seed"]),
        "trainings of the final test set": n_final,
        "trainings on a GPU": int(np.count_nonzero(~np.isin(last["device"], ("cpu", "native")))),
        "epochs": len(runs["seed"]),
        "diverged trainings": int(np.count_nonzero(last["status"] == "diverged")),
        "core-hours": {str(m): float(hours[last["machine"] == m].sum()) for m in np.unique(last["machine"])},
        "megabytes": sum(path.stat().st_size for path in files_of(task)) / 1e6,
    }


def table(watts: float) -> str:
    """Return the generated part of the datasheet."""
    costs_of = {task: costs(task) for task in tasks()}
    head = ["| | " + " | ".join(f"`{task}`" for task in costs_of) + " |", "| --- |" + " ---: |" * len(costs_of)]
    rows = [
        (count, *(f"{cost[count]:,}" for cost in costs_of.values()))
        for count in (
            *("configs", "trainings", "trainings of the final test set", "trainings on a GPU", "epochs"),
            "diverged trainings",
        )
    ]
    rows.append(("size of all files (MB)", *(f"{cost['megabytes']:.1f}" for cost in costs_of.values())))
    for machine in sorted({machine for cost in costs_of.values() for machine in cost["core-hours"]}):
        hours = (cost["core-hours"].get(machine, 0.0) for cost in costs_of.values())
        rows.append((f"training and evaluation (core-hours), {machine}", *(f"{h:.1f}" for h in hours)))
    totals = [sum(cost["core-hours"].values()) for cost in costs_of.values()]
    rows.append(("training and evaluation (core-hours)", *(f"{total:.1f}" for total in totals)))
    energy = (f"{total * watts / 1000:.2f}" for total in totals)
    rows.append((f"energy (kWh), an estimate at {watts:g} W per core", *energy))
    return "\n".join([*head, *(f"| {' | '.join(row)} |" for row in rows), ""])


def outputs(watts: float = WATTS_PER_CORE) -> dict[Path, str]:
    """Return the content of each file to write, by path."""
    texts = {
        DATA / task / "croissant.json": json.dumps(croissant(task), indent=2, ensure_ascii=False) + "\n"
        for task in tasks()
    }
    shared = sorted(
        path
        for name in ("candidates", "live", "nasbench201", "next", "studies")
        for path in (DATA / name).rglob("*")
        if path.is_file() and path.suffix in FORMATS  # not a lock that a command left behind
    )
    files = [*(path for task in tasks() for path in files_of(task)), *shared, DATA / "LICENSE"]
    texts[SUMS] = "".join(f"{digest(path)}  {path.relative_to(ROOT).as_posix()}\n" for path in files)
    before, _, rest = SHEET.read_text(encoding="utf-8").partition(BEGIN)
    texts[SHEET] = f"{before}{BEGIN}{table(watts)}{END}{rest.partition(END)[2]}"
    return texts


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--watts-per-core", type=float, default=WATTS_PER_CORE, help="assumed power; default: %(default)s"
    )
    for path, text in outputs(parser.parse_args().watts_per_core).items():
        path.write_text(text, encoding="utf-8")
