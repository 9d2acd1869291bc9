"""The number of a release moves when the release moves, and by as much as its readers must know."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from jahs.errors import CorruptFile
from jahs.release.manifest import Manifest
from surrogate.packing import FIRST, number_after, number_facts, standing_release

FILES = {"forests-0.npz": (3, "a" * 64), "table.npz": (4, "b" * 64), "quality.json": (5, "c" * 64)}


def manifest(version: object = "0.4.2", protocol: str = "p", **files: str) -> Manifest:
    entries = {
        name: (size, files.get(name.split(".")[0].replace("-", "_"), sha)) for name, (size, sha) in FILES.items()
    }
    return Manifest(
        folder=Path(),
        task="digits",
        files=MappingProxyType(entries),
        facts=MappingProxyType({"version": version, "protocol": protocol, "commit": str(files)}),
        sha256="",
    )


def test_a_release_that_is_made_again_keeps_its_number() -> None:
    assert number_after(manifest(), manifest("0")) == "0.4.2"


@pytest.mark.parametrize("file", ["forests_0", "table"])
def test_other_answers_move_the_second_part(file: str) -> None:
    assert number_after(manifest(), manifest(**{file: "d" * 64})) == "0.5.0"


def test_other_words_about_the_same_answers_move_the_third_part() -> None:
    assert number_after(manifest(), manifest(quality="d" * 64)) == "0.4.3"


def test_a_release_names_those_before_it_with_the_same_answers() -> None:
    first, other = manifest(), manifest(quality="d" * 64)
    config = replace(other, facts={**other.facts, "reference_config": {"N": 5}})
    assert number_facts(None, first) == {"version": FIRST}
    facts = number_facts(replace(first, sha256="1"), other)
    assert facts == {"version": "0.4.3", "same_answers": ["1"]}
    second = replace(other, facts={**other.facts, **facts}, sha256="2")
    assert number_facts(second, other) == facts
    again = replace(other, facts={**other.facts, "commit": "another"})
    assert number_facts(second, again) == {"version": "0.4.3", "same_answers": ["1", "2"]}
    assert number_facts(second, config) == {"version": "0.4.4", "same_answers": ["1", "2"]}
    assert number_facts(second, manifest(table="d" * 64)) == {"version": "0.5.0"}
    assert number_facts(manifest("0.1.x"), other) == {"version": FIRST}


def test_another_protocol_moves_the_first_part() -> None:
    assert number_after(manifest(), manifest(protocol="q")) == "1.0.0"


@pytest.mark.parametrize("version", [None, "test", "JAHS-Bench-201", 1, "1.2"])
def test_what_replaces_nothing_or_a_release_without_a_number_is_the_first(version: object) -> None:
    assert number_after(manifest(version), manifest(table="d" * 64)) == FIRST
    assert number_after(None, manifest()) == FIRST


def test_a_release_whose_number_cannot_be_read_is_not_numbered_over(tmp_path: Path) -> None:
    assert standing_release(tmp_path) is None
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(CorruptFile, match=r"manifest\.json"):
        standing_release(tmp_path)
