"""Encodings of the cell for an optimiser: regret of three searches with each, and what NAS-Bench-101 found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import numpy as np
from joblib import parallel_config
from numpy.typing import NDArray

from experiments.report.writing import table
from experiments.science.papers import OVER_SEEDS, beside_paper, compared
from experiments.science.subjects import MAIN, Subject, values_of_cells
from jahs.adapters.importing import import_tool
from jahs.comparison.logs import Floats
from jahs.comparison.summaries import mean_interval
from jahs.spaces.cell import EDGES, OPERATIONS, all_ops
from jahs.spaces.cell.index import STRING_ORDER
from jahs.spaces.cell.operations import PASSING, ZERO, cell_numbers
from jahs.spaces.cell.paths import PATH_EDGES, live_paths
from jahs.spaces.parameters import LARGEST
from workshop.pages.document import Block, Document, Figure, Text, sections_of
from workshop.pages.drawing import Curve, draw_curves
from workshop.resampling import interval_text

N_SEEDS: Final = 20
N_TRIALS: Final = 100
_SMAC_TREES: Final = 5
_SMAC_CANDIDATES: Final = 1000  # random ones of a proposal
_N_INITIAL: Final = 10
_SMAC_RANDOM: Final = 0.33  # share of random proposals
_N_OPS: Final = len(OPERATIONS)
_EDGES: Final = range(len(EDGES))

_METHOD: Final = f"""Only the cell is searched, at full size with the hyperparameters of the release's reference config,
    for {N_TRIALS} proposals, including repeated ones, with {N_SEEDS} seeds, without training noise. Regret is exact:
    all cells are known. **adjacency** is the operation of each edge; **string** is one choice for each target node (5,
    25 and 125), as NAS-Bench-201's string groups them; **path** is the operations on each of the four paths, and the
    cell that agrees with most of them; **continuous** is a weight for each edge, the number of heaviest edges that are
    kept, and their operations. TPE is Optuna's with its defaults. SMAC has a random forest with the settings of
    NAS-Bench-101: {_SMAC_TREES} trees, a third of the proposals random; the others are the best of {_SMAC_CANDIDATES}
    random points by expected improvement. Intervals are over seeds; the last column is the refits' mean regret."""

_CLAIMS: Final = {
    "gain of the continuous encoding for TPE over adjacency": (
        (("TPE", "continuous"), ("TPE", "adjacency")),
        "large (S3, figure 6)",
        "six operations are few, and every cell is valid, so adjacency leaves TPE nothing to repair",
    ),
    "lead of SMAC over TPE with adjacency": (
        (("SMAC", "adjacency"), ("TPE", "adjacency")),
        "SMAC better; TPE like random search (figure 7)",
        "not known; TPE is Optuna's instead of Hyperopt's, and there are 15,625 cells instead of 423,000",
    ),
    "lead of TPE over SMAC with the continuous encoding": (
        (("TPE", "continuous"), ("SMAC", "continuous")),
        "TPE better (S3, figure 6)",
        "not known; the paper assumes that its settings of SMAC, tuned for adjacency, do not suit its 21 weights",
    ),
}
"""Claims of NAS-Bench-101: the better and the worse (search, encoding), the paper's words, and why not here."""

Point = dict[str, Any]  # values of an encoding's parameters; Any: an int or a float


class Encoding(NamedTuple):
    """Other parameters for the same 15,625 cells; `_METHOD` describes each encoding."""

    choices: Mapping[str, int]  # parameters that are categorical, and the number of their choices
    decode: Callable[[Point], int]  # the number of the cell of a point
    floats: tuple[str, ...] = ()  # parameters in [0, 1]

    def random(self, rng: np.random.Generator) -> Point:
        """Return a uniformly random point."""
        drawn: Point = {name: int(rng.integers(n)) for name, n in self.choices.items()}
        return drawn | {name: float(rng.random()) for name in self.floats}

    def neighbors(self, point: Point, rng: np.random.Generator) -> list[Point]:
        """Return points with another choice of one parameter, or a random value of one float, in random order."""
        moves = [(name, value) for name, n in self.choices.items() for value in range(n) if value != point[name]]
        changes: list[tuple[str, float]] = [*moves, *((name, float(rng.random())) for name in self.floats)]
        return [{**point, changes[i][0]: changes[i][1]} for i in rng.permutation(len(changes)).tolist()]


def _decode_string(point: Point) -> int:
    """Return the cell; its operations in the order of the string are the digits of the nodes' numbers."""
    number = (point["node2"] * _N_OPS**2 + point["node3"]) * _N_OPS**3 + point["node4"]
    return int(cell_numbers(all_ops()[number, np.argsort(STRING_ORDER)]))


@cache
def _paths() -> NDArray[np.int64]:
    """Return the number of each cell's operations on each path, (15625, 4): 0 where the path is dead."""
    codes = np.searchsorted(PASSING, all_ops())
    numbers = [1 + codes[:, edges] @ (len(PASSING) ** np.arange(len(edges))) for edges in PATH_EDGES]
    return np.stack(numbers, axis=1) * live_paths(all_ops())


def _decode_weights(point: Point) -> int:
    heaviest = sorted(_EDGES, key=lambda edge: -point[f"weight{edge}"])[: point["n_edges"]]
    return int(cell_numbers([PASSING[point[f"op{edge}"]] if edge in heaviest else ZERO for edge in _EDGES]))


ENCODINGS: Final[Mapping[str, Encoding]] = {
    "adjacency": Encoding(
        choices={f"op{edge}": _N_OPS for edge in _EDGES},
        decode=lambda point: int(cell_numbers([point[f"op{edge}"] for edge in _EDGES])),
    ),
    "string": Encoding(choices={f"node{k}": _N_OPS ** (k - 1) for k in (2, 3, 4)}, decode=_decode_string),
    "path": Encoding(  # not every four paths are those of a cell: decoded is the first cell that agrees with most
        choices={f"path{i}": len(PASSING) ** len(edges) + 1 for i, edges in enumerate(PATH_EDGES)},
        decode=lambda point: int((_paths() == [point[f"path{i}"] for i in range(4)]).sum(axis=1).argmax()),
    ),
    "continuous": Encoding(
        choices={"n_edges": len(EDGES) + 1} | {f"op{edge}": len(PASSING) for edge in _EDGES},
        floats=tuple(f"weight{edge}" for edge in _EDGES),
        decode=_decode_weights,
    ),
}


def _local(values: Floats, encoding: Encoding, n: int, seed: int) -> list[int]:
    """Climb from the best of ten random points to the first better neighbour; restart at a local optimum."""
    rng, visited = np.random.default_rng(seed), list[int]()
    while len(visited) < n:
        starts = [encoding.random(rng) for _ in range(_N_INITIAL)]
        visited += (cells := [encoding.decode(start) for start in starts])
        best, neighbors = values[cells].max(), encoding.neighbors(starts[values[cells].argmax()], rng)
        while neighbors and len(visited) < n:
            visited.append(cell := encoding.decode(neighbor := neighbors.pop(0)))
            if values[cell] > best:
                best, neighbors = values[cell], encoding.neighbors(neighbor, rng)
    return visited[:n]


def _tpe(values: Floats, encoding: Encoding, n: int, seed: int) -> list[int]:
    tool = import_tool("optuna", needs="optuna")
    tool.logging.set_verbosity(tool.logging.ERROR)
    distributions = {name: tool.distributions.CategoricalDistribution(range(n)) for name, n in encoding.choices.items()}
    distributions |= {name: tool.distributions.FloatDistribution(0.0, 1.0) for name in encoding.floats}
    study = tool.create_study(direction="maximize", sampler=tool.samplers.TPESampler(seed=seed))
    cells = []
    for _ in range(n):
        trial = study.ask(distributions)
        cells.append(encoding.decode(trial.params))
        study.tell(trial, float(values[cells[-1]]))
    return cells


def _smac(values: Floats, encoding: Encoding, n: int, seed: int) -> list[int]:
    """Run SMAC with a random forest and the settings of NAS-Bench-101 (appendix S3).

    Its local search iterates over sets of configs, whose order differs between processes, so candidates are random.
    """
    names = ("smac", "smac.runhistory", "smac.acquisition.maximizer", "ConfigSpace")
    tool, history, maximizers, spaces = (import_tool(name, needs="smac") for name in names)
    space = spaces.ConfigurationSpace(seed=seed)
    space.add([spaces.Categorical(name, [*range(n_choices)]) for name, n_choices in encoding.choices.items()])
    space.add([spaces.Float(name, (0.0, 1.0)) for name in encoding.floats])
    facade = tool.HyperparameterOptimizationFacade
    # Threads make its forest four times as slow.
    with TemporaryDirectory() as folder, parallel_config(backend="sequential"):
        scenario = tool.Scenario(space, output_directory=folder, deterministic=True, n_trials=n, seed=seed)
        smac = facade(
            scenario,
            model=facade.get_model(scenario, n_trees=_SMAC_TREES),
            random_design=facade.get_random_design(scenario, probability=_SMAC_RANDOM),
            intensifier=facade.get_intensifier(scenario, max_config_calls=1),
            acquisition_maximizer=maximizers.RandomSearch(space, challengers=_SMAC_CANDIDATES, seed=seed),
            initial_design=facade.get_initial_design(scenario, n_configs=_N_INITIAL),
            logging_level=False,
            overwrite=True,
        )
        cells = []
        for _ in range(n):
            trial = smac.ask()
            cells.append(encoding.decode(dict(trial.config)))
            smac.tell(trial, history.TrialValue(cost=100.0 - float(values[cells[-1]])), save=False)
    return cells


SEARCHES: Final = {"local search": _local, "TPE": _tpe, "SMAC": _smac}
"""Searches by name: each returns the first n cells that it evaluates, with repetitions, given the values of all."""


class Regret(NamedTuple):
    """The regret of a search with an encoding, in points."""

    over_time: Floats  # (n_seeds, n_trials), on the released models
    on_refits: Floats  # (n_seeds,), of the last incumbents, mean over refits; NaN without


Regrets = Mapping[tuple[str, str], Regret]  # by (search, encoding)


def measure_encodings(subject: Subject, *, n_seeds: int, n_trials: int) -> Regrets:
    """Return the regrets of every search with every encoding."""
    values, *refit_values = (values_of_cells(model, MAIN, LARGEST).ravel() for model in subject.models)
    regrets = {}
    for search, name in product(SEARCHES, ENCODINGS):
        cells = np.array([SEARCHES[search](values, ENCODINGS[name], n_trials, seed) for seed in range(n_seeds)])
        over_time = values.max() - np.maximum.accumulate(values[cells], axis=1)
        ends = cells[np.arange(n_seeds), values[cells].argmax(axis=1)]
        on_refits = [refit.max() - refit[ends] for refit in refit_values] or [np.full(n_seeds, np.nan)]
        regrets[search, name] = Regret(over_time, np.mean(on_refits, axis=0))
    return regrets


def encodings_page(subjects: Sequence[Subject]) -> Document:
    """Return the page; seeds are those of the searches."""
    by_task = {task.title: measure_encodings(task, n_seeds=N_SEEDS, n_trials=N_TRIALS) for task in subjects}
    smallest = {title: " and ".join(_best_with(search, of) for search in SEARCHES) for title, of in by_task.items()}
    rows = []
    for (title, regrets), (claim, ((better, worse), paper, why)) in product(by_task.items(), _CLAIMS.items()):
        lead = mean_interval((regrets[worse].over_time - regrets[better].over_time)[:, -1])  # paired by seeds
        rows.append(compared(f"{claim} (points)", title, paper, lead, why=why))
    gains = (f"{title} {ours}" for quantity, title, _, ours, *_ in rows if quantity.startswith("gain"))
    blocks = ("Comparison with NAS-Bench-101", beside_paper("NAS-Bench-101", rows, more=OVER_SEEDS), Text(_METHOD))
    return Document(
        title="Encodings of the cell",
        subtitle=f"Gain of the continuous encoding for TPE over adjacency, in points of validation accuracy after "
        f"{N_TRIALS} proposals: {', '.join(gains)}. NAS-Bench-101 finds a large gain. Smallest regrets, and those with "
        f"adjacency: {'; '.join(f'{title}: {text}' for title, text in smallest.items())}.",
        sections=sections_of([*blocks, *(block for task in subjects for block in _blocks(task, by_task[task.title]))]),
    )


def _best_with(search: str, regrets: Regrets) -> str:
    """Return the smallest regret of a search, and that with adjacency."""
    ends = {name: mean_interval(regrets[search, name].over_time[:, -1]) for name in ENCODINGS}
    shown = dict.fromkeys((min(ends, key=lambda name: ends[name].value), "adjacency"))
    return f"{search} with {', '.join(f'{name} {interval_text(ends[name])}' for name in shown)}"


def _blocks(subject: Subject, regrets: Regrets) -> Iterator[str | Block]:
    yield subject.title
    for search in SEARCHES:
        shown = {name: regrets[search, name].over_time.mean(axis=0) for name in ENCODINGS}
        x = np.arange(1.0, N_TRIALS + 1)
        curves = [Curve(title=name, x=x, y=mean, number=i) for i, (name, mean) in enumerate(shown.items())]
        yield Figure(
            name=f"{search.replace(' ', '-').lower()}-{subject.slug}",
            caption=f"Mean regret of {search} on {subject.title} by encoding, in points of validation accuracy, on the "
            "released models.",
            alt="; ".join(f"{name} ends at {mean[-1]:.2f}" for name, mean in shown.items()),
            drawing=draw_curves(curves, x_label="proposals", y_label="regret (points)", y_scale="log"),
        )
    head = ("search", "encoding", "regret", "on the refits")
    rows = [(*key, mean_interval(of.over_time[:, -1]), mean_interval(of.on_refits)) for key, of in regrets.items()]
    caption = f"Final regret in points of validation accuracy, with 95 % intervals{OVER_SEEDS}"
    yield table(caption, head, rows, n_labels=2)
