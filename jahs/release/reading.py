"""Reading a release: one file at a time, when it is first needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from jahs.errors import CorruptFile, InvalidArgument, InvalidConfig, MissingData, UnknownFormat, UnknownName
from jahs.models.forest import Forest, map_forest, parse_forest
from jahs.release.manifest import MANIFEST, Manifest, read_manifest
from jahs.release.models import FAMILIES, REFITS, Models, Refits
from jahs.release.quality import read_quality
from jahs.release.table import RecordedTable, parse_table_npz
from jahs.spaces.configs import Config, validate
from jahs.spaces.parameters import show
from jahs.tasks.definitions import Task
from jahs.tasks.own import task_recorded_as

_Part = TypeVar("_Part")


class Release:
    """A folder that answers queries for one task. Its parts are read and checked when they are first needed.

    Attributes:
        facts: facts of the manifest besides task and files: version, source, protocol, seed, versions, commit.
        sha256: sha256 of the manifest, which covers every byte of the release.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.manifest: Manifest = read_manifest(path)
        self.facts, self.sha256 = self.manifest.facts, self.manifest.sha256
        recorded, protocol = self.facts.get("own_task", self.manifest.task), self.facts.get("protocol")
        try:
            self.task: Task = task_recorded_as(recorded, protocol=protocol)
        except InvalidArgument as err:
            raise CorruptFile(f"{path / MANIFEST}: {err}") from err
        if self.task.name != self.manifest.task:
            raise CorruptFile(f"{path / MANIFEST}: own_task is {self.task.name!r}, but task is {self.manifest.task!r}")

    def __repr__(self) -> str:
        version = self.manifest.facts.get("version", "no version")
        return f"<Release of {self.task.name}, {version}, {self.path}>"

    def has(self, name: str) -> bool:
        """Return whether the release has a file of this name, such as "table.npz"."""
        return name in self.manifest.files

    def parse(self, name: str, from_dict: Callable[[Mapping[str, Any]], _Part]) -> _Part:  # Any: JSON
        """Return the result of `from_dict` on a JSON file, such as "references.json"; errors name the file."""
        content, where = self._json(name), self.path / name
        try:
            return from_dict(content)
        except UnknownFormat as err:
            raise UnknownFormat(f"{where}: {err}") from err
        except InvalidArgument as err:
            raise CorruptFile(f"{where}: {err}\nrestore the file") from err

    def _json(self, name: str) -> dict[str, Any]:  # Any: JSON
        """Return the content of a JSON file; its task and protocol must agree with the manifest."""
        content = self.manifest.read_json(name)
        if not isinstance(content, dict):
            raise CorruptFile(f"{self.path / name} is not a JSON object; restore the file")
        expected = {"task": self.manifest.task, "protocol": self.facts.get("protocol")}
        for fact, wanted in expected.items():
            if wanted is not None and content.get(fact, wanted) != wanted:
                raise CorruptFile(
                    f"{self.path / name} is of {fact} {show(content[fact])}, but {MANIFEST} says {show(wanted)}; "
                    "restore both"
                )
        return content

    def check_task(self) -> None:
        """Refuse a release whose models or noise have another task or number of epochs; CorruptFile names both."""
        wanted = self.task.max_epoch
        if self.has("noise.json") and (found := self._json("noise.json").get("max_epoch", wanted)) != wanted:
            raise CorruptFile(
                f"{self.path / 'noise.json'} has max_epoch={show(found)}, but {self.task.name} has {wanted} epochs; "
                "restore the file"
            )
        costs = self.models.costs
        if costs != "exact" and self.task.name not in import_module("jahs.published.sources").PUBLISHED_TASKS:
            raise CorruptFile(
                f"{self.path / 'models.json'}: costs={costs!r} is for releases imported from JAHS-Bench-201, and "
                f"{self.task.name} is not one of its tasks; restore the file"
            )

    @cached_property
    def models(self) -> Models:
        """The models of every learned metric."""
        return self.parse("models.json", Models.from_dict)

    @cached_property
    def forests(self) -> tuple[Forest, ...]:
        """The forests of each pack, in the order of `models.packs`."""
        return self._forests_of(self.models, "models.json")

    def family(self, name: str) -> tuple[Models, tuple[Forest, ...]]:
        """Return the models of another family for some of the metrics, and the forests of each of their packs."""
        if not isinstance(name, str) or name not in FAMILIES:
            raise UnknownName(
                f"{UnknownName.of('model', name, FAMILIES)}; leave model out for the release's own models"
            )
        file = f"{name}.json"
        if not self.has(file):
            raise MissingData(
                f"{self.path} has no models of {name} ({file}); leave model out, or write a release that has them: "
                f"python -m surrogate.release --families {name}"
            )
        models = self.parse(file, Models.from_dict)
        if strangers := sorted(models.metrics.keys() - self.models.metrics.keys()):
            raise CorruptFile(
                f"{self.path / file} answers {', '.join(strangers)}, and models.json does not; restore both"
            )
        return models, self._forests_of(models, file)

    def _forests_of(self, models: Models, file: str) -> tuple[Forest, ...]:
        forests = []
        for place, pack in enumerate(models.packs):
            counts = [model.forest + 1 for model in models.metrics.values() if model.pack == place]
            forests.append(self._forest(pack.file, len(pack.features.columns), max(counts, default=1), file))
        return tuple(forests)

    def _forest(self, file: str, n_columns: int, n_forests: int, wanted_by: str, *, exactly: bool = False) -> Forest:
        """Return the forests of a file; CorruptFile if it has too few, other columns, or, with `exactly`, too many."""
        path = self.path / file
        if file.endswith(".npz"):
            forest = parse_forest(path, self.manifest.read(file))
        else:
            forest = map_forest(path, lambda array: self.manifest.map(f"{file}/{array.name}"))
        has_others = forest.n_forests != n_forests if exactly else forest.n_forests < n_forests
        if has_others or forest.n_features != n_columns:
            raise CorruptFile(
                f"{path}: {forest.n_forests} forests over {forest.n_features} features, but {wanted_by} wants "
                f"{n_forests} over {n_columns}; restore both"
            )
        return forest

    @cached_property
    def refits(self) -> Refits:
        """The models that were fitted again to resampled configs; MissingData if there are none."""
        if not self.has(REFITS):
            raise MissingData(f"{self.path} has no refits ({REFITS}), so the error of its models is not known")
        refits = self.parse(REFITS, Refits.from_dict)
        known = self.models.metrics
        if faults := [
            f"{name}: pack={pack.pack}, but models.json says {known[name].pack if name in known else 'nothing of it'}"
            for pack in refits.packs
            for name in pack.metrics
            if name not in known or known[name].pack != pack.pack
        ]:
            raise CorruptFile("\n".join([f"{self.path / REFITS} does not fit models.json; restore both", *faults]))
        return refits

    @cached_property
    def refit_forests(self) -> tuple[Forest, ...]:
        """The forests of each pack of `refits`; forest k * n_metrics + i is refit k of the pack's metric i."""
        n_refits, packs = self.refits.n_refits, self.models.packs
        return tuple(
            self._forest(
                pack.file, len(packs[pack.pack].features.columns), n_refits * len(pack.metrics), REFITS, exactly=True
            )
            for pack in self.refits.packs
        )

    @cached_property
    def noise(self) -> Any:  # Any: jahs.models.noise is imported only if the release has noise
        """The model of the training noise, a `jahs.models.noise.NoiseModel`, or None."""
        if not self.has("noise.json"):
            return None
        return self.parse("noise.json", import_module("jahs.models.noise").NoiseModel.from_dict)

    @cached_property
    def table(self) -> RecordedTable:
        """The recorded runs; MissingData if the release has none."""
        if not self.has("table.npz"):
            raise MissingData(f"{self.path} has no recorded runs (table.npz); kind='table' needs a release that has")
        table = parse_table_npz(self.path / "table.npz", self.manifest.read("table.npz"))
        wanted = self.facts.get("protocol")
        for name, columns in (("runs", table.runs), ("profile", table.profile)):
            others = sorted(set(columns["protocol"].tolist()) - {wanted})
            if self.facts.get("source") == "measured" and others and isinstance(wanted, str):
                raise CorruptFile(
                    f"{self.path / 'table.npz'}: {name} have protocol {show(others[0])}, but {MANIFEST} says "
                    f"{wanted}; restore both"
                )
        return table

    @cached_property
    def quality(self) -> Any:  # Any: JSON
        """The content of quality.json, or None."""
        return self.parse("quality.json", read_quality) if self.has("quality.json") else None

    @property
    def reference_config(self) -> Config | None:
        """A good config, to which views fix the keys that they do not search; None if the manifest has none."""
        try:
            return validate(self.facts["reference_config"]) if "reference_config" in self.facts else None
        except InvalidConfig as err:
            raise CorruptFile(f"{self.path / MANIFEST}: reference_config: {err}; restore the file") from err

    @property
    def answers_as(self) -> frozenset[str]:
        """The sha256 of this release, and of earlier ones with the same answers according to its manifest."""
        earlier = self.facts.get("same_answers", [])
        if not isinstance(earlier, list) or not all(isinstance(sha256, str) for sha256 in earlier):
            raise CorruptFile(f"{self.path / MANIFEST}: same_answers must be a list of texts; restore the file")
        return frozenset({self.sha256, *earlier})

    def verify(self) -> None:
        """Check size and sha256 of every file, and that there is no other file, folder or link."""
        for name in sorted(self.manifest.files):
            self.manifest.check(name)
        self.check_contents()

    def check_contents(self) -> None:
        """Check the task of models and noise, that refits and other families fit, and that no other file is there."""
        if self.has("models.json"):
            self.check_task()
        if self.has(REFITS):
            _ = self.refit_forests
        for name in FAMILIES:
            if self.has(f"{name}.json"):
                self.family(name)
        if strangers := self.manifest.strangers():
            raise CorruptFile(
                f"{self.path}: {', '.join(strangers[:10])} not among the files of {MANIFEST}, or a link; "
                "take away what does not belong to the release"
            )


def read_release(path: Path) -> Release:
    """Open a release; its files are read when they are first needed.

    MissingData: the folder is not a release. CorruptFile, UnknownFormat, UnknownName: its manifest is invalid.
    """
    return Release(Path(path))
