"""The declaration of a study: optimisers, views, tasks, seeds and budget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from typing import Any, Final, Literal

from experiments.optimizers import OPTIMIZERS
from jahs.comparison.terms import ViewChoice
from jahs.errors import InvalidArgument, UnknownName
from jahs.files.hashing import digest_facts


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One curve of a figure: an optimiser with its settings on a view."""

    name: str  # identifier, and the folder of its logs
    title: str  # label in figures and tables
    optimizer: str  # name in `experiments.optimizers`
    view: ViewChoice = field(default_factory=ViewChoice)  # the part of the space and the fidelities
    # The optimiser's settings that are not defaults, as (name, value).
    settings: tuple[tuple[str, Any], ...] = ()  # Any: JSON
    family: Literal["model-free", "model-based"] = "model-free"  # whether the optimiser fits a model
    objectives: tuple[str, ...] = ("valid_acc",)
    chapter: str = ""  # arms of one chapter are drawn together
    # Source of the answers: the "release"; in the study `families` its second family of models; in the study `truth`
    # the "table" or the "left_out" surrogates; in the study `live` trainings ("trained").
    world: Literal["release", "lightgbm", "table", "left_out", "trained"] = "release"
    # Simulated workers, which share the budget: w of them have a w-th of its time; None: the study's, each with the
    # whole time.
    workers: int | None = None

    @property
    def is_of_release(self) -> bool:
        """Whether models of the release answer, which have means."""
        return self.world in ("release", "lightgbm")

    @property
    def model(self) -> str | None:
        """The family of models that answers; None: the release's own."""
        return "lightgbm" if self.world == "lightgbm" else None

    def declared(self) -> dict[str, Any]:  # Any: JSON
        """Return the declaration; without `workers` unless declared, as in folders of older versions."""
        return {name: value for name, value in asdict(self).items() if name != "workers" or value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Repetition:
    """One arm on one task with one seed: one trial log."""

    task: str
    arm: str
    seed: int
    refit: int | None = None  # the number of the refit that answers; None: the release itself

    @property
    def path(self) -> str:
        """The path of its log in the study's folder."""
        folder = "" if self.refit is None else f"refit-{self.refit}/"
        return f"{self.task}/{self.arm}/{folder}seed-{self.seed:04d}.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFacts:
    """Release and budget of one task of a study."""

    release: str  # sha256 of the release's manifest
    version: str
    source: str
    mean_runtime_s: float  # mean runtime of a full evaluation over random configs, the unit of time
    budget_s: float  # simulated seconds of one repetition
    n_refits: int = 0  # number of refits of the release


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A study. Tasks, seeds and arms can be chosen on the command line."""

    name: str
    title: str
    question: str
    protocol: str  # the protocol that it follows and its deviations, in sentences
    arms: tuple[Arm, ...]
    tasks: tuple[str, ...] = ("fashion_mnist_mini", "cifar10_mini")
    n_seeds: int = 30  # the default number of seeds, which are 0, 1, 2 and so on
    n_refit_seeds: int = 6  # how many of these seeds also run on every refit of the release
    n_evaluations: int = 100  # the budget in mean full evaluations
    workers: int = 1
    # "mean": answers are means over trainings; "seeded": they contain training noise of the repetition's seed.
    noise: Literal["mean", "seeded"] = "seeded"
    # Metrics whose trade-offs are reported; empty for a single objective.
    combinations: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        """Refuse arms with the same name, which would share their logs."""
        names = [arm.name for arm in self.arms]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise InvalidArgument(f"study {self.name}: several arms have the name {', '.join(twice)}")

    @property
    def chapters(self) -> tuple[str, ...]:
        """The chapters in order."""
        return tuple(dict.fromkeys(arm.chapter for arm in self.arms))

    def arm(self, name: str) -> Arm:
        """Return the arm of this name; refuse an unknown one."""
        arms = {arm.name: arm for arm in self.arms}
        if name not in arms:
            raise UnknownName.of("arm", name, arms)
        return arms[name]

    def repetitions(self, *, tasks: Mapping[str, TaskFacts], arms: Sequence[str], n_seeds: int) -> Iterator[Repetition]:
        """Yield every repetition of these tasks and arms, finished or not; those on refits last.

        They come seed by seed, so that an unfinished study compares all arms.

        Args:
            n_seeds: seeds of each arm on the release itself.
        """
        for seed, task, arm in product(range(n_seeds), tasks, arms):
            yield Repetition(task=task, arm=arm, seed=seed)
        for seed, (task, facts) in product(range(min(n_seeds, self.n_refit_seeds)), tasks.items()):
            for refit, arm in product(range(facts.n_refits), arms):
                yield Repetition(task=task, arm=arm, seed=seed, refit=refit)

    def to_dict(self) -> dict[str, Any]:  # Any: JSON
        """Return the declaration as JSON."""
        return {**asdict(self), "arms": [{**arm.declared(), "settings": dict(arm.settings)} for arm in self.arms]}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Study:  # Any: JSON
        """Return the study of a declaration from `to_dict`; an invalid one raises various built-in errors."""
        tasks, arms = tuple(given["tasks"]), tuple(map(_read_arm, given["arms"]))
        combinations = tuple(tuple(metrics) for metrics in given["combinations"])
        return cls(**{**given, "tasks": tasks, "combinations": combinations, "arms": arms})

    def digest_of(self, name: str) -> str:
        """Return 16 hex digits of everything declared that affects an arm's repetitions, its name included.

        Tasks, seeds and other arms may be added to a folder, and titles reworded. Default settings of the optimiser are
        not part of the digest: each log names them, and a page refuses logs of one arm whose settings differ.
        """
        arm = self.arm(name).declared()
        arm["settings"] = sorted(arm["settings"])  # JSON does not keep their order
        facts = {key: getattr(self, key) for key in _DECISIVE}
        return digest_facts({**facts, "arm": {key: arm[key] for key in arm if key not in _WORDS}})

    def differing(self, other: Study, arms: Sequence[str]) -> list[str]:
        """Return which arms of another study this one lacks or declares otherwise."""
        known = {arm.name for arm in self.arms}
        return [name for name in arms if name not in known or self.digest_of(name) != other.digest_of(name)]


def arm_of(optimizer: str, *more: str, **declared: Any) -> Arm:  # Any: fields of an arm
    """Return an arm named after its optimiser and `more`, with the optimiser's title and family unless declared."""
    entry = OPTIMIZERS[optimizer]
    name = "-".join((optimizer, *more))
    return Arm(**{"name": name, "title": entry.title, "optimizer": optimizer, "family": entry.family, **declared})


_DECISIVE: Final = ("name", "n_evaluations", "workers", "noise")
_WORDS: Final = ("title", "chapter", "family")


def _read_arm(given: Mapping[str, Any]) -> Arm:
    view = ViewChoice(**{**given["view"], "fidelities": tuple(given["view"]["fidelities"])})
    settings, objectives = tuple(given["settings"].items()), tuple(given["objectives"])
    return Arm(**{**given, "view": view, "settings": settings, "objectives": objectives})
