"""What a study is: a frozen declaration of optimisers, views, tasks, seeds and budget. It runs nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, TypeAlias

from jahs.errors import InvalidArgument, UnknownName
from jahs.files.hashing import digest_facts

__all__ = ["FULL_SIZES", "Arm", "Family", "Repetition", "Study", "ViewChoice"]

FULL_SIZES: Final = {"N": 5, "W": 16, "Resolution": 1.0}
"""Where a view holds the sizes that it neither searches nor uses as fidelities, as in JAHS-Bench-201."""

Family: TypeAlias = Literal["model-free", "model-based"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewChoice:
    """Which part of the space an arm searches, and what it may spend less of.

    Attributes:
        search: "all", "nas" (the cell), "hpo" (how it is trained) or "sizes" (everything, with N, W and Resolution).
        fidelities: names; without "epoch", every training is a whole one.
        fixed_part: where the keys that are not searched are: at their "default", or at a "random" sample for each seed.
            N, W and Resolution are always full unless they are searched or fidelities.
    """

    search: Literal["all", "nas", "hpo", "sizes"] = "all"
    fidelities: tuple[str, ...] = ("epoch",)
    fixed_part: Literal["default", "random"] = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One curve: an optimiser with its settings at a view.

    Attributes:
        name: identifier; names the folder of its logs.
        title: for people.
        optimizer: name in `experiments.optimizers`.
        view: what it searches.
        settings: of the optimiser, as (name, value); what is left out is the optimiser's default.
        family: whether the optimiser fits a model.
        objectives: metrics that it is told about.
        chapter: arms of one chapter are drawn together.
        world: which answers it gets: the "release", or in the study `truth` the "table" or the "left_out" surrogate.
    """

    name: str
    title: str
    optimizer: str
    view: ViewChoice = ViewChoice()
    settings: tuple[tuple[str, Any], ...] = ()  # Any: JSON
    family: Family = "model-free"
    objectives: tuple[str, ...] = ("valid_acc",)
    chapter: str = ""
    world: Literal["release", "table", "left_out"] = "release"


@dataclass(frozen=True, slots=True, kw_only=True)
class Repetition:
    """One arm on one task with one seed: one trial log."""

    task: str
    arm: str
    seed: int

    @property
    def path(self) -> str:
        """Where its log is in the folder of the study."""
        return f"{self.task}/{self.arm}/seed-{self.seed:04d}.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A frozen declaration; what it leaves to the command line are tasks, seeds and which arms.

    Attributes:
        name: identifier.
        title, question: for people.
        protocol: what it follows and where it departs, in sentences.
        arms: the curves.
        tasks: run on these unless told otherwise.
        n_seeds: run so many unless told otherwise; seeds are 0, 1, 2 and so on.
        n_evaluations: the budget in mean full evaluations.
        workers: simulated workers.
        noise: "mean" answers with the mean of trainings, "seeded" with a draw of training noise for each run's seed.
        combinations: metrics that trade-offs are reported for; empty for a single objective.
    """

    name: str
    title: str
    question: str
    protocol: str
    arms: tuple[Arm, ...]
    tasks: tuple[str, ...] = ("fashion_mnist_mini",)
    n_seeds: int = 30
    n_evaluations: int = 100
    workers: int = 1
    noise: Literal["mean", "seeded"] = "mean"
    combinations: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        """Refuse arms of the same name: they would share their logs."""
        names = [arm.name for arm in self.arms]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise InvalidArgument(f"study {self.name}: arms of the same name: {', '.join(twice)}")

    @property
    def chapters(self) -> tuple[str, ...]:
        """Names of the chapters in order."""
        return tuple(dict.fromkeys(arm.chapter for arm in self.arms))

    def arm(self, name: str) -> Arm:
        """Return the arm of this name.

        Raises:
            UnknownName: there is none; lists those that there are.
        """
        for arm in self.arms:
            if arm.name == name:
                return arm
        raise UnknownName.of("arm", name, [arm.name for arm in self.arms])

    def repetitions(self, *, tasks: Sequence[str], arms: Sequence[str], n_seeds: int) -> Iterator[Repetition]:
        """Yield every run, seed after seed, so that what is there after a while compares all arms."""
        for seed in range(n_seeds):
            for task in tasks:
                for arm in arms:
                    yield Repetition(task=task, arm=arm, seed=seed)

    def to_dict(self) -> dict[str, Any]:  # Any: JSON
        """The declaration as JSON has it."""
        return {**asdict(self), "arms": [{**asdict(arm), "settings": dict(arm.settings)} for arm in self.arms]}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Study:  # Any: JSON
        """Return the study of a declaration, as `to_dict` gives it.

        Raises:
            TypeError, KeyError, AttributeError, InvalidArgument: it is none.
        """
        lists = {key: tuple(given[key]) for key in ("tasks",)}
        combinations = tuple(tuple(metrics) for metrics in given["combinations"])
        return cls(**{**given, **lists, "combinations": combinations, "arms": tuple(map(_read_arm, given["arms"]))})

    def digest_of(self, name: str) -> str:
        """Return 16 hex digits of everything declared that decides an arm's repetitions, its name included.

        Tasks, seeds and other arms may be added to a folder; titles may be reworded. Settings that an arm leaves to its
        optimiser are not in it: each log names them all, and a page refuses logs of one arm that differ in them.

        Raises:
            UnknownName: there is no such arm.
        """
        arm = asdict(self.arm(name))
        arm["settings"] = sorted(arm["settings"])  # JSON keeps them in no order
        facts = {key: getattr(self, key) for key in _DECISIVE}
        return digest_facts({**facts, "arm": {key: arm[key] for key in arm if key not in _WORDS}})


_DECISIVE: Final = ("name", "n_evaluations", "workers", "noise")
_WORDS: Final = ("title", "chapter", "family")


def _read_arm(given: Mapping[str, Any]) -> Arm:
    view = {**given["view"], "fidelities": tuple(given["view"]["fidelities"])}
    read = {
        "view": ViewChoice(**view),
        "settings": tuple(given["settings"].items()),
        "objectives": tuple(given["objectives"]),
    }
    return Arm(**{**given, **read})
