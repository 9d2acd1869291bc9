"""Add fronts, reference points and a reference config to a release, computed from its own answers.

A measured release already has them. An imported one does not, since none were published.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Final, cast

import numpy as np
import numpy.typing as npt

from jahs.errors import InvalidArgument
from jahs.queries.benchmark import Benchmark
from jahs.queries.queryable import Queryable
from jahs.queries.references import References, build_references
from jahs.release import read_release
from jahs.release.writing import extend_release
from jahs.spaces.columns import Columns, rows
from jahs.spaces.configs import Config
from jahs.spaces.parameters import LARGEST

_log = logging.getLogger(__name__)
_N_CONFIGS: Final = 20_000
_PIECE: Final = 4000  # configs that a thread is asked for at once
_SEED: Final = 0
_N_REFERENCE: Final = 1000
_QUANTILE: Final = 0.9


def add_front(
    path: Path, *, n_configs: int | None = None, workers: int | None = None, report: Callable[[str], None] = _log.info
) -> None:
    """Search a release for its best trade-offs and write them into it; the same models give the same bytes.

    Args:
        path: a release; one that has references stays as it is.
        n_configs: number of random configs to begin with; None: 20,000.
        workers: threads; None: one per core.
        report: is called with a line about the progress.
    """
    release = read_release(path)
    if release.has("references.json"):
        report(f"{release.task.name}: the front is there already")
        return
    bench = Benchmark(release.task.name, release=path)
    try:
        references = search_references(bench, n_configs=n_configs, workers=workers, report=report)
    except InvalidArgument as err:
        raise InvalidArgument(f"{path}: it has no front: {err}; leave out --with-front") from err
    columns = bench.space.sample_columns(_N_REFERENCE, seed=_SEED)
    reference = good_config(columns, bench.query_many(columns, metrics=["valid_acc"])["valid_acc"])
    extend_release(release, {"reference_config": reference}, references=references.to_dict())
    report(f"{release.task.name}: front: written")


def search_references(
    bench: Benchmark, *, n_configs: int | None = None, workers: int | None = None, report: Callable[[str], None]
) -> References:
    """Search for the best trade-offs of a benchmark; the arguments are those of `add_front`.

    Raises:
        InvalidArgument: the benchmark has no trade-offs.
    """
    with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        queryable = _in_pieces(bench, pool, lambda n: report(f"{bench.task.name}: front: {n} configs asked"))
        try:
            return build_references(queryable, n_configs=n_configs or _N_CONFIGS, seed=_SEED)
        finally:
            pool.shutdown(cancel_futures=True)  # so that Ctrl-C waits only for running queries


def good_config(configs: Columns, accuracy: npt.NDArray[np.float64]) -> Config:
    """Return the config at the 0.9 quantile of accuracy (nearest rank), at full size: good, not the best known.

    Of equally accurate configs, the first counts as the worse one.
    """
    row = np.argsort(accuracy, kind="stable")[math.ceil(_QUANTILE * len(accuracy)) - 1]
    (config,) = rows({name: values[row : row + 1] for name, values in configs.items()})
    return cast("Config", {**config, **LARGEST})


def _in_pieces(bench: Benchmark, pool: ThreadPoolExecutor, report: Callable[[int], None]) -> Queryable:
    """Return the part of a benchmark that `build_references` reads, answered by several threads: the same bits."""
    n_answered = 0

    def query_many(configs: Columns, *, metrics: Sequence[str]) -> dict[str, npt.NDArray[np.float64]]:
        nonlocal n_answered
        n = len(next(iter(configs.values())))
        pieces = [{name: v[i : i + _PIECE] for name, v in configs.items()} for i in range(0, n, _PIECE)]
        answers = []
        for answer in pool.map(lambda piece: bench.query_many(piece, metrics=metrics), pieces):
            answers.append(answer)
            n_answered += len(answer[metrics[0]])
            report(n_answered)
        return {name: np.concatenate([answer[name] for answer in answers]) for name in metrics}

    attributes = {"metrics": bench.metrics, "space": bench.space, "max_epoch": bench.max_epoch}
    return cast("Queryable", SimpleNamespace(**attributes, query_many=query_many))
