"""The part of a benchmark that an optimiser may see, and the answers to its proposals.

Proposals are checked one by one and queried in one batch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple, cast

import numpy as np

from jahs.errors import InvalidArgument, InvalidFidelity, InvalidTable, JahsError, NotRecorded
from jahs.queries.views import Queryable, View
from jahs.simulate.trial import AskedFidelity, Proposal
from jahs.spaces.configs import Config, Sampler, as_mapping
from jahs.spaces.fidelities import is_list
from jahs.spaces.parameters import is_integer, show
from jahs.spaces.seeds import read_seed
from jahs.spaces.space import Space
from jahs.tasks.metrics import Metric, is_hidden, read_metrics


class Job(NamedTuple):
    """A checked proposal with its answers."""

    config: Config
    fidelity: dict[str, int | float]
    seed: int | None
    tag: object
    epochs: tuple[int, ...]  # epochs of the reports, then the last epoch
    answers: list[dict[str, float]]  # at each of these epochs, by metric


def network_of(config: Config, fidelity: Mapping[str, int | float]) -> tuple[object, ...]:
    """Return the identity of a network: config, N, W and Resolution. A larger one of the same config is another."""
    return (*config.values(), *(value for name, value in fidelity.items() if name != "epoch"))


class Draws:
    """The seeds of the training noise of one run.

    A network that is proposed again, at an epoch that was proposed before or an earlier one, is trained again: its
    noise is another draw.
    """

    def __init__(self, evaluation_seed: int | None) -> None:
        self._seed = evaluation_seed
        self._trained: dict[tuple[object, ...], tuple[int, int]] = {}  # number and epoch of its latest training

    def seed_of(self, config: Config, fidelity: Mapping[str, int | float]) -> int | None:
        """Return the seed of the next proposal, and count its training."""
        if self._seed is None:
            return None
        network, epoch = network_of(config, fidelity), int(fidelity["epoch"])
        number, reached = self._trained.get(network, (0, 0))
        number += epoch <= reached
        self._trained[network] = (number, epoch)
        return redrawn(self._seed, number)


def redrawn(evaluation_seed: int, number: int) -> int:
    """Return the noise seed of a network's training number 0, 1, ... in a run; number 0 has the run's own seed."""
    if not number:
        return evaluation_seed
    digest = blake2b(f"{evaluation_seed} {number}".encode(), digest_size=8, person=b"jahs-redrawn-1").digest()
    return int.from_bytes(digest, "little") >> 1


class Answers:
    """Queries one view on behalf of an optimiser."""

    def __init__(self, view: View, *, metrics: Sequence[str] | None, evaluation_seed: int | None) -> None:
        names = tuple(view.metrics) if metrics is None else read_metrics(metrics, known=view.metrics)
        self.metrics: Final = tuple(dict.fromkeys((*names, "runtime")))
        self._view = view
        self._space = view.space
        self._implied = view.space.implied
        self._has_epochs = "epoch" in view.fidelities
        self._draws = Draws(evaluation_seed)

    def answer(self, proposals: Sequence[Proposal | Mapping[str, object]]) -> list[Job | JahsError]:
        """Return a job for each proposal, or its error if it is invalid."""
        jobs: list[Job | JahsError] = []
        for proposal in proposals:
            try:
                jobs.append(self._read(proposal))
            except JahsError as err:  # noqa: PERF203  # costs nothing where nothing is raised
                jobs.append(err)
        jobs_to_query = [job for job in jobs if isinstance(job, Job)]
        for seed in dict.fromkeys(job.seed for job in jobs_to_query):
            batch = [job for job in jobs_to_query if job.seed == seed]
            try:
                self._query(batch, seed)
            except NotRecorded:
                jobs = [self._query_alone(job) if isinstance(job, Job) and job.seed == seed else job for job in jobs]
        return jobs

    def _query_alone(self, job: Job) -> Job | JahsError:
        """Return a job with its answers, or the error if they are not recorded."""
        try:
            self._query([job], job.seed)
        except NotRecorded as err:
            return err
        return job

    def _read(self, proposal: Proposal | Mapping[str, object]) -> Job:
        if not isinstance(proposal, Proposal):
            mapping = as_mapping(proposal)
            if not isinstance(mapping, Mapping):
                raise InvalidArgument(f"{show(proposal)} is neither a config nor a Proposal")
            proposal = Proposal(config=mapping)
        config = as_mapping(proposal.config)
        if isinstance(config, Mapping):
            config = {**self._implied, **config}
        validated = self._space.validate(cast("Mapping[str, object]", config))
        fidelity = {"epoch": self._view.max_epoch, **self._view.fidelity(proposal.at)}
        epoch = int(fidelity["epoch"])
        reports = _read_reports(proposal.reports, epoch)
        if reports and not self._has_epochs:
            raise InvalidFidelity(f"reports={reports}: the epoch is not a fidelity of this view")
        epochs = (*reports, epoch)
        own = proposal.seed
        seed = self._draws.seed_of(validated, fidelity) if own is None else read_seed(own)
        return Job(validated, fidelity, seed, proposal.tag, epochs, [])

    def _query(self, jobs: Sequence[Job], seed: int | None) -> None:
        """Fill in the answers of jobs of one seed, all in one query."""
        sizes = [name for name in self._view.fidelities if name != "epoch"]
        configs: list[Mapping[str, object]] = []
        for job in jobs:
            network = {**job.config, **{name: job.fidelity[name] for name in sizes}} if sizes else job.config
            configs += [network] * len(job.epochs)
        epochs = np.array([epoch for job in jobs for epoch in job.epochs], dtype=np.int64)
        self._view.check()
        # Query the benchmark itself: the view's fixed values have already been applied.
        answers = self._view.bench.query_many(configs, each_at=epochs, seed=seed, metrics=self.metrics)
        values = {name: np.asarray(answers[name], dtype=np.float64) for name in self.metrics}
        runtime = values["runtime"]
        if not (np.isfinite(runtime) & (runtime > 0)).all():
            i = int(np.argmin(np.isfinite(runtime) & (runtime > 0)))
            raise InvalidTable(f"runtime={runtime[i]} of {configs[i]}: a trial takes a positive number of seconds")
        lists = zip(*(column.tolist() for column in values.values()), strict=True)
        rows = (dict(zip(self.metrics, row, strict=True)) for row in lists)
        is_finite = all(np.isfinite(column).all() for column in values.values())
        for job in jobs:
            for _ in job.epochs:
                row = next(rows)
                job.answers.append(row if is_finite else {k: v for k, v in row.items() if math.isfinite(v)})


def _read_reports(reports: object, epoch: int) -> tuple[int, ...]:
    """Return the epochs of the reports as ints; nothing is rounded."""
    if not is_list(reports) or not all(map(is_integer, reports)):
        raise InvalidFidelity(f"reports={show(reports)} is not a sequence of epochs, which are integers")
    epochs = [int(cast("int", report)) for report in reports]
    if epochs and (epochs != sorted(set(epochs)) or epochs[0] < 1 or epochs[-1] >= epoch):
        raise InvalidFidelity(
            f"reports={show(reports)} are not increasing epochs from 1 to before the last one, {epoch}"
        )
    return tuple(epochs)


class Visible(Sampler):
    """A benchmark or a view as its optimisers see it: it cannot be queried.

    Attributes:
        space: the searched keys.
        fidelities: every fidelity's legal values in ascending order.
        full: the highest fidelity.
        max_epoch: the last epoch.
        metrics: metrics of the trials; none is measured on the test images.
    """

    __slots__ = ("_view", "fidelities", "full", "max_epoch", "metrics", "space")

    def __init__(self, oracle: Queryable, metrics: Sequence[str] | None) -> None:
        view = oracle if isinstance(oracle, View) else View(oracle)
        names = tuple(view.metrics) if metrics is None else read_metrics(metrics, known=view.metrics)
        self.space: Final[Space] = view.space
        self.fidelities: Final[Mapping[str, tuple[float, ...]]] = dict(view.fidelities)  # not the view's own
        self.full: Final[Mapping[str, float]] = dict(view.full)
        self.max_epoch: Final[int] = view.max_epoch
        self.metrics: Final[Mapping[str, Metric]] = {name: view.metrics[name] for name in names if not is_hidden(name)}
        self._view: Final = view

    def _sample(self, n: int, seed: int | None) -> list[Config]:
        return self._view.sample(n, seed=seed)

    def fidelity(self, at: AskedFidelity = None) -> dict[str, float]:
        """Return a complete fidelity; omitted parts have their full value."""
        return self._view.fidelity(at)

    def path(self, share: float) -> dict[str, float]:
        """Return the fidelity at a share in (0, 1] of the way to the full one; see `jahs.queries.views.View.path`."""
        return self._view.path(share)


def visible(oracle: Queryable | Visible, metrics: Sequence[str] | None = None) -> Visible:
    """Return the part of `oracle` that optimisers may see, with the named metrics or all.

    Raises:
        UnknownName: a metric does not exist; lists those that do.
    """
    return oracle if isinstance(oracle, Visible) else Visible(oracle, metrics)
