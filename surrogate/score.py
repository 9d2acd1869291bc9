"""Score fitted models on a part of the split, each score beside the noise ceiling.

python -m surrogate.score RUNS --split SPLIT --models DIR --part {valid,test} --out FILE
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from jahs.errors import CorruptFile, MissingData, ProtocolMismatch
from jahs.files.strict_json import parse_json
from jahs.tasks.metrics import LEARNED
from splits.split import Split
from surrogate.command import runs_parser
from surrogate.data.measurements import Measurements, read_with_split
from surrogate.data.rows import assemble_answered, assemble_repeats, by_part
from surrogate.judging.agreement import Scores, score_surrogate
from surrogate.models.model import read_surrogate
from workshop.command import run_command
from workshop.folders import write_json

__all__ = ["SCORES_FORMAT", "main", "score_table"]

SCORES_FORMAT: Final = 1
_PARTS: Final = ("valid", "test")


def score_table(scores: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the scores of all rows, the last epoch and the best tenth as text."""
    lines = [
        f"{'metric':10} {'cut':11} {'n':>6} {'R2':>7} {'tau':>7} {'ceiling':>7} {'sparse':>7} {'RMSE':>9} {'MAE':>9}"
    ]
    for metric, found in scores.items():
        for cut in ("all", "last epoch", "best tenth"):
            if cut in found["cuts"]:
                model, top = found["cuts"][cut]["model"], found["cuts"][cut]["ceiling"]
                numbers = " ".join(_shown(source, name) for source, name in (
                    (model, "r2"), (model, "tau"), (top, "tau"), (model, "sparse_tau"))
                )  # fmt: skip
                lines.append(f"{metric:10} {cut:11} {model['n']:6} {numbers} {model['rmse']:9.4g} {model['mae']:9.4g}")
    return "\n".join(lines)


def _shown(scores: Scores, name: str) -> str:
    value = scores.get(name)
    return f"{'-':>7}" if value is None else f"{value:7.4f}"


def _score_all(measured: Measurements, split: Split, models: Path, part: str, *, seed: int) -> dict[str, Any]:
    metrics = [metric for metric in LEARNED if (models / f"{metric}.json").is_file()]
    if not metrics:
        raise MissingData(f"{models} has no model; python -m surrogate.fit writes them")
    _check_models(models, metrics, measured, split)
    scores = {}
    for metric in metrics:
        rows = by_part(assemble_answered(metric, measured), split)[part]
        repeats = assemble_repeats(metric, measured)
        scores[metric] = score_surrogate(read_surrogate(models, metric), rows, repeats, seed=seed)
    return scores


def _check_models(models: Path, metrics: Sequence[str], measured: Measurements, split: Split) -> None:
    """Refuse models of other measurements or another split, whose training configs may be in the part to score.

    A split that extends theirs moves no config. But configs that were only profiled were in no part: they train
    latency, and may be test configs now.
    """
    manifest = models / "manifest.json"
    try:
        facts = parse_json(manifest.read_bytes())
        fitted_with, of_what = facts["split"], {key: facts[key] for key in ("task", "protocol")}
    except (OSError, ValueError, KeyError, TypeError) as err:
        raise CorruptFile(
            f"{manifest} does not say with which split, task and protocol the models were fitted"
        ) from err
    machines = {"runtime": "timing_machine", "latency": "profile_machine"}
    of_what |= {key: facts[key] for metric, key in machines.items() if metric in metrics and key in facts}
    here = {"task": measured.task.name, "protocol": measured.protocol}
    here |= {key: getattr(measured, key) for key in machines.values()}
    if differing := [f"{key} {value}, not {here[key]}" for key, value in of_what.items() if value != here[key]]:
        raise ProtocolMismatch(
            f"{models} was fitted to other measurements ({'; '.join(differing)}); give the runs of the fit, or fit "
            "again"
        )
    if fitted_with not in {split.digest, split.extends}:
        raise ProtocolMismatch(
            f"{models} was fitted with split {fitted_with}, this one is {split.digest}, and a config may have "
            "changed parts; give the split of the fit, or fit again"
        )
    if fitted_with != split.digest and "latency" in metrics and facts.get("only_profiled") != 0:
        raise ProtocolMismatch(
            f"{models}: latency was fitted to configs that had no part in split {fitted_with}, and may have one in "
            f"{split.digest}; give the split of the fit, or fit again"
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 2 for a user's mistake."""
    parser = runs_parser("score", __doc__, example="runs/ --split split.json --models models/ --out scores.json")
    parser.add_argument("--models", type=Path, required=True, help="what surrogate.fit wrote")
    parser.add_argument("--part", choices=_PARTS, default="valid", help="test: once, for the card (%(default)s)")
    parser.add_argument("--out", type=Path, help="a JSON file for every score")
    parser.add_argument("--seed", type=int, default=0, help="of the bootstrap (%(default)s)")
    given = parser.parse_args(argv)

    def work() -> str:
        measured, split = read_with_split(given.runs, given.split)
        scores = _score_all(measured, split, given.models, given.part, seed=given.seed)
        if given.out:
            content = {"format": SCORES_FORMAT, "part": given.part, "split": split.digest, "scores": scores}
            write_json(given.out, content)
        return score_table(scores)

    return run_command("surrogate.score", work)


if __name__ == "__main__":
    sys.exit(main())
