"""Score cells of NAS-Bench-201 without training, and compare the scores with their published accuracies.

    python -m experiments.nasbench201 --accuracies accuracies.csv --data-dir DIR

The networks are those of NAS-Bench-201: N=5 cells of W=16 channels per stage, ReLU, CIFAR-10 at 32 pixels. The cells
are a sample stratified by published accuracy, one per stratum, and the best outside it, as many as 1 % of all cells but
at most a fifth of the sample. Every scored cell is kept, so the command resumes after any interruption. Each time, the
cells scored so far are compared, and the comparison is saved for the page (`experiments.proxies`).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from experiments.analysis.proxy_orders import SHARES, ProxyAgreement, seeds_of, summary, with_references
from jahs.errors import InvalidArgument
from jahs.files.runs import read_configs
from jahs.files.sealed_json import sealed_text
from jahs.models.cost import n_params
from jahs.schema import OPS, PROXIES, PROXY_TIMES
from jahs.spaces.cell.index import nb201_indices
from jahs.spaces.encoding import encode
from pipeline.proposals import table_of
from pipeline.protocol import NASBENCH201, protocol_digest, protocol_facts
from pipeline.proxies import check_limits, proxy_folder
from pipeline.runs import RunsFolder
from workshop.command import add_data_dir, add_minutes, add_workers, new_parser, run_command
from workshop.folders import write_text
from workshop.jobs import Where
from workshop.measured import read_proxies, rows_of
from workshop.ranks import benchmark_overlap, choose_p
from workshop.real_landscape import N_CELLS, cell_configs, known, read_cell_accuracies

_EPOCH: Final = 200
_TOP: Final = 0.01
_MOST_TOP: Final = 5  # at most one cell in five is an added one
_SUMMARY: Final = "agreement.json"


def choose_cells(accuracies: Mapping[int, float], n: int) -> tuple[list[int], list[int]]:
    """Return a sample of cells, one per stratum of accuracy, and the best cells outside it; n in all."""
    if len(accuracies) != N_CELLS:
        raise InvalidArgument(f"there are accuracies of {len(accuracies)} cells; NAS-Bench-201 has {N_CELLS:,}")
    if not _MOST_TOP <= n <= N_CELLS:
        raise InvalidArgument(f"cells={n} must be in {_MOST_TOP}..{N_CELLS}")
    ranked = np.array(sorted(accuracies, key=lambda index: (-accuracies[index], index)))
    n_top = min(round(_TOP * N_CELLS), n // _MOST_TOP)
    rng = np.random.default_rng(0)
    drawn = [int(rng.choice(stratum)) for stratum in np.array_split(ranked, n - n_top)]
    return drawn, [index for index in ranked.tolist() if index not in set(drawn)][:n_top]


def score_cells(
    *, accuracies: Path, data_dir: Path | None, out: Path, cells: int, seeds: int, workers: int, minutes: float | None
) -> dict[str, Any]:  # Any: JSON
    """Score cells until a limit is reached, save the comparison, and return how many are scored."""
    where = Where(workers=workers)
    check_limits(where, seeds, minutes)
    published = read_cell_accuracies(accuracies)[_EPOCH]
    drawn, added = choose_cells(published, cells)
    folder = out / "runs"
    runs = RunsFolder.open_or_make(folder, facts=protocol_facts(NASBENCH201), digest=protocol_digest(NASBENCH201))
    rounds = [0] * len(drawn) + [1] * len(added)
    table = table_of(cell_configs([*drawn, *added]), source="cells", number=rounds)
    runs.add_configs(table)
    is_wanted = np.isin(read_configs(folder)["config_id"], table["config_id"])
    limits: dict[str, Any] = {"where": where, "n_seeds": seeds, "minutes": minutes}  # Any: arguments
    n_added = proxy_folder(folder, NASBENCH201, data_dir=data_dir, is_wanted=is_wanted, **limits)
    comparison = summarise_cells(folder, published)
    write_text(out / _SUMMARY, sealed_text(comparison))
    return {"out": str(out), "cells_added": n_added, "cells_scored": comparison["n_scored"]}


def summarise_cells(folder: Path, accuracies: Mapping[int, float]) -> dict[str, Any]:  # Any: JSON
    """Return how scores agree with published accuracies: of the stratified sample, and of the best 1 % of all cells."""
    configs, scored = read_configs(folder), read_proxies(folder)
    ids = np.unique(scored["config_id"])
    cells = rows_of(configs, ids)
    indices = nb201_indices(np.stack([cells[op] for op in OPS], axis=1))
    published = np.array([accuracies[index] for index in indices.tolist()])
    is_drawn = cells["round"] == 0
    is_top = published >= sorted(accuracies.values(), reverse=True)[round(_TOP * N_CELLS) - 1]
    scores = with_references({name: seeds_of(scored, name, ids) for name in PROXIES})

    def agreement(mask: NDArray[np.bool_]) -> ProxyAgreement:
        return summary({name: values[:, mask] for name, values in scores.items()}, published[mask])

    sample = agreement(is_drawn)
    times = {name: float(scored[column].mean()) if len(ids) else math.nan for name, column in PROXY_TIMES.items()}
    return {
        "title": NASBENCH201.title,
        "n_scored": len(ids),
        "n_sample": int(is_drawn.sum()),
        "n_top": int(is_top.sum()),
        "n_seeds": len(scores["parameters"]),
        "torch": sorted(set(scored["torch_version"].tolist())),
        "machine": sorted(set(scored["machine"].tolist())),
        "cpu_s": {name: known(round(seconds, 4)) for name, seconds in times.items()},
        "n_missing": {name: int(np.isnan(scores[name]).sum()) for name in PROXIES},
        "sample": sample.found,
        "orders": sample.orders,
        "best": agreement(is_top).found,
        "parameters": overlaps_of_parameters(accuracies),
    }


def overlaps_of_parameters(accuracies: Mapping[int, float]) -> dict[str, dict[str, float]]:
    """Return the benchmark's overlap of the number of parameters with accuracy over all cells, by share of the best.

    The largest network first, the smallest first, and a random order.
    """
    configs = encode(cell_configs(range(N_CELLS)), NASBENCH201.max_epoch)
    n = n_params(configs, NASBENCH201).astype(np.float64)
    truth = np.array([accuracies[index] for index in range(N_CELLS)])
    orders = {"largest first": n, "smallest first": -n, "random order": np.zeros(N_CELLS)}
    ps = {f"{share:g}": choose_p(N_CELLS, top_share=share) for share in SHARES}
    return {
        share: {name: benchmark_overlap(order, truth, p=p) for name, order in orders.items()} for share, p in ps.items()
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = new_parser(
        "experiments.nasbench201",
        "Score cells of NAS-Bench-201 with zero-cost proxies and compare them with their published accuracies.",
        example="--accuracies accuracies.csv --data-dir cifar10/ --cells 100",
    )
    columns = "columns index, cifar10_test_200_epochs, cifar10_valid_12_epochs"
    parser.add_argument("--accuracies", type=Path, required=True, metavar="CSV", help=columns)
    add_data_dir(parser)
    out_help = "folder of the scores (default: %(default)s)"
    parser.add_argument("--out", type=Path, default=Path("data/nasbench201"), help=out_help)
    parser.add_argument("--cells", type=int, default=1000, help="cells in all (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=3, help="seeds of each cell (default: %(default)s)")
    add_workers(parser)
    add_minutes(parser, "cell")
    given = vars(parser.parse_args(argv))
    stopped = "every scored cell is kept, start again"
    return run_command("experiments.nasbench201", lambda: score_cells(**given), stopped=stopped)


if __name__ == "__main__":
    sys.exit(main())
