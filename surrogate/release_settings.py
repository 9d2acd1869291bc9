"""How a release is made: numbers, settings and families, checked together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jahs.errors import InvalidArgument, UnknownName
from jahs.release.models import FAMILIES
from surrogate.command import integer_faults
from surrogate.data.rows import FEWEST
from surrogate.models.refits import N_REFITS


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseSettings:
    """How a release is made.

    Attributes:
        params: settings that `surrogate.tune` found, its history beside it; None: the default ones.
        fewest: training configs that every fidelity group needs.
        seed: seed of bootstraps, noise and reference points.
        curve_seeds: subsets of each size of the learning curve; 0: no curve.
        distilled: drawn configs that models of accuracies learn from a teacher (`surrogate.models.teacher`); None: as
            many as `params` says.
        n_refits: models of each accuracy that are fitted again to resampled configs; 0: none.
        families: other model families to fit as well: "lightgbm", or none.
        rates: values of each rate in the exhaustive search for the best config at full size, where the search for the
            fronts starts, too; 0: no such search.
        workers: processes.
    """

    params: Path | None = None
    fewest: int = FEWEST
    seed: int = 0
    curve_seeds: int = 5
    distilled: int | None = None
    n_refits: int = N_REFITS
    families: Sequence[str] = ()
    rates: int = 0
    workers: int = 2

    def check(self) -> None:
        """Refuse numbers that are out of range and families that do not exist, every fault at once."""
        least = dict.fromkeys(("seed", "curve_seeds", "n_refits", "rates", "fewest"), 0) | {"workers": 1}
        if self.distilled is not None:
            least["distilled"] = 0
        faults = integer_faults({name: getattr(self, name) for name in least}, **least)
        one = [name for name, n in (("refits", self.n_refits), ("rates", self.rates)) if n == 1]
        faults += [f"{name}=1 must be 0 or at least 2" for name in one]
        unknown = [UnknownName.of("family", name, FAMILIES) for name in self.families if name not in FAMILIES]
        if faults or len(unknown) > 1:
            raise InvalidArgument("\n".join([*faults, *map(str, unknown)]))
        if unknown:
            raise unknown[0]

    def command(self) -> str:
        """Return the command line of these settings, with placeholders for folders and files."""
        flags = {
            "curve-seeds": self.curve_seeds,
            "distilled": self.distilled,
            "families": " ".join(self.families) or None,
            "fewest": self.fewest,
            "rates": self.rates or None,
            "refits": self.n_refits,
            "seed": self.seed,
        }
        params = ["--params PARAMS"] if self.params else []
        options = [f"--{name} {value}" for name, value in flags.items() if value is not None]
        return " ".join(["python -m surrogate.release RUNS --split SPLIT", *params, *options, "--out RELEASE"])
