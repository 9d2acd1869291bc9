"""Freeze the final test set, once, before the first round of proposals: configs that influence no choice.

python -m surrogate.freeze RUNS --split SPLIT [--params TUNED/params.json] --out LIST

Half of them are uniform at full size, from a numbered stream of their own. The others are the best configs that random
search, regularized evolution and TPE find, each with its own seeds, on refits that are not released: models fitted to
train and valid, each without one fold. The members are written beside the split (`splits.final`), and LIST is for
`pipeline.collect --configs LIST --source final`. If they are frozen already, only LIST is written again.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from jahs.errors import ProtocolMismatch
from jahs.schema import FINAL_SOURCE
from jahs.spaces.columns import Columns, config_ids, rows
from jahs.spaces.configs import Config
from splits.final import UNIFORM, FinalTest, final_beside, final_path, write_final
from splits.split import Split
from surrogate.command import runs_parser
from surrogate.data.measurements import Measurements, digest_measurements, read_with_split
from surrogate.models.boosting import UNTUNED, ForestSettings
from surrogate.models.fitting import leave_folds_out, read_params
from surrogate.models.optima import MAIN, asking, best_found
from surrogate.propose import check_list, lines_of, write_list
from workshop.command import run_command
from workshop.numbered import FINAL_SEED, full_range

OPTIMIZERS: Final = ("random_search", "regularized_evolution", "tpe")
SEEDS: Final = (0, 1)
N_UNIFORM: Final = 60  # uniform configs, and as many proposed ones: a multiple of the optimisers times the folds
_N_FOLDS: Final = 4
_EVALUATIONS: Final = 5000  # per search; TPE: a tenth
_SEED: Final = 0  # for folds and searches


def draw_final(measured: Measurements, split: Split, *, of_forest: ForestSettings = UNTUNED) -> FinalTest:
    """Return a final test set; it depends on the measurements, the split, the settings and Optuna's version alone.

    Raises:
        InvalidArgument: a search found too few different cells.
        MissingDependency: TPE needs optuna.
    """
    models = list(leave_folds_out(MAIN, measured, split, n_folds=_N_FOLDS, seed=_SEED, settings=of_forest))
    members: list[Config] = rows(full_range(0, N_UNIFORM, seed=FINAL_SEED))
    groups = [UNIFORM] * N_UNIFORM
    taken_ids = np.union1d(measured.runs["config_id"], config_ids(members))

    def is_known(columns: Columns) -> NDArray[np.bool_]:
        return np.isin(config_ids(columns), taken_ids)

    n_each = N_UNIFORM // (len(OPTIMIZERS) * _N_FOLDS)
    for i, optimizer in enumerate(OPTIMIZERS):
        for j, model in enumerate(models):
            seed = int(np.random.SeedSequence([_SEED, i, j]).generate_state(1, np.uint32)[0] >> 1)
            best = best_found(
                asking(model), (optimizer,), n=n_each, evaluations=_EVALUATIONS, seed=seed, is_known=is_known
            )
            members += rows(best)
            groups += [optimizer] * n_each
            taken_ids = np.union1d(taken_ids, config_ids(best))
    facts: dict[str, Any] = {  # Any: JSON
        "n": N_UNIFORM,
        "folds": _N_FOLDS,
        "evaluations": _EVALUATIONS,
        "seed": _SEED,
        "measurements": digest_measurements(measured),
        "split": split.digest,
        "stream": FINAL_SEED,
    }
    return FinalTest(
        task=measured.task.name,
        protocol=measured.protocol,
        configs=tuple(members),
        groups=tuple(groups),
        seeds=SEEDS,
        facts=facts,
    )


def freeze(runs: Path, split_file: Path, out: Path, *, params: Path | None = None) -> str:
    """Freeze a final test set beside a split, unless there is one, and write its list; return a line about it."""
    check_list(out)
    measured, split = read_with_split(runs, split_file)
    final = final_beside(split_file)
    state = "was frozen already"
    if final is None:
        settings = read_params(params).get(MAIN, UNTUNED) if params is not None else UNTUNED
        final = draw_final(measured, split, of_forest=settings)
        write_final(split_file, final)
        state = "is frozen"
    elif final.protocol != measured.protocol:
        raise ProtocolMismatch(f"{final_path(split_file)} has protocol {final.protocol}, not {measured.protocol}")
    facts = {"protocol": final.protocol, "release": "", "round": 0, "source": FINAL_SOURCE}
    text = lines_of(final.configs, [final.seeds] * len(final.configs), facts)
    command = write_list(out, text, measured, runs, FINAL_SOURCE)
    counts = ", ".join(f"{count} {group}" for group, count in final.counts.items())
    return f"{final_path(split_file)} {state}: {counts}; {out} lists them: {command}"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 2 for a user's mistake."""
    parser = runs_parser("freeze", __doc__, example="runs/ --split split.json --out final.jsonl")
    parser.add_argument("--out", type=Path, required=True, help="the list to train")
    parser.add_argument("--params", type=Path, help="settings that surrogate.tune found (params.json)")
    given = parser.parse_args(argv)
    return run_command("surrogate.freeze", lambda: freeze(given.runs, given.split, given.out, params=given.params))


if __name__ == "__main__":
    sys.exit(main())
