"""Refits that are damaged, or whose digests fit but not their meaning, are refused by name, at little cost."""

from __future__ import annotations

import io
import shutil
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

import jahs
from jahs.errors import CorruptFile, JahsError, MissingData, UnknownFormat
from jahs.release import read_release
from tests.adversarial.attacks import peak_memory
from tests.jahs.models.noise_models import noise_model
from tests.pace import processor_time
from tests.releases import edit_json, make_release, vouch

CONFIG = jahs.space().default()


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("whole") / "digits"
    return make_release(path, n_refits=3, noise=noise_model("digits").to_dict())


@pytest.fixture
def forged(whole, tmp_path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "digits"))


def query_all(folder: Path) -> None:
    """Query with and without the refits."""
    bench = jahs.Benchmark("digits", release=folder, engine="numpy")
    assert bench.query(CONFIG).valid_acc > 0
    assert np.isfinite(list(bench.predict(CONFIG).total_sd.values())).all()
    jahs.Benchmark("digits", release=folder, engine="numpy", refit=2).query(CONFIG)


@pytest.mark.parametrize("name", ["refits.json", "refits-0.npz"])
@pytest.mark.parametrize("how", ["flipped", "cut", "longer", "missing", "link"])
def test_damaged_refits_are_refused_by_name_and_the_models_still_answer(forged, name, how, tmp_path):
    path = forged / name
    data = bytearray(path.read_bytes())
    if how == "flipped":
        data[len(data) // 2] ^= 1
    path.unlink()
    if how == "link":
        (tmp_path / "else").write_bytes(data)
        path.symlink_to(tmp_path / "else")
    elif how != "missing":
        path.write_bytes(data[:-1] if how == "cut" else data + b"\0" * (how == "longer"))
    assert jahs.Benchmark("digits", release=forged).query(CONFIG).valid_acc > 0
    for act in (
        lambda: jahs.Benchmark("digits", release=forged).predict(CONFIG),
        lambda: jahs.Benchmark("digits", release=forged, refit=0),
        lambda: read_release(forged).verify(),
    ):
        with pytest.raises((CorruptFile, MissingData), match=name):
            act()


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"n_refits": 2}, r"refits-0\.npz: 9 forests .* wants 6"),
        ({"n_refits": 10**9}, r"n_refits=1000000000 is not an integer in 2\.\.1000"),
        ({"n_refits": 3.0}, r"n_refits=3\.0 is not an integer"),
        ({"n_refits": True}, r"n_refits=True is not an integer"),
        ({"scales": {"valid_acc": 1.0}}, r"scales must be for train_acc, valid_acc, test_acc, got valid_acc"),
        ({"scales": {"train_acc": 1.0, "valid_acc": -1.0, "test_acc": 1e9}}, r"valid_acc=-1\.0 is not a number in \(0"),
        ({"scales": {"train_acc": 1.0, "valid_acc": "2", "test_acc": 1.0}}, r"valid_acc='2' is not a number"),
        ({"scales": []}, r"scales must be for"),
        ({"packs": []}, r"metrics must be one or more"),
        ({"packs": {}}, r"metrics must be one or more"),
        ({"packs": [{"file": "refits-0.npz", "pack": 1, "metrics": ["valid_acc"]}]}, r"scales must be for"),
        ({"packs": 5}, r"refits: a part is missing"),
        (
            {"packs": [{"file": "../refits-0.npz", "pack": 0, "metrics": ["train_acc", "valid_acc", "test_acc"]}]},
            "no .*",
        ),
        (
            {"packs": [{"file": "models.json", "pack": 0, "metrics": ["train_acc", "valid_acc", "test_acc"]}]},
            "not the name",
        ),
        (
            {"packs": [{"file": "refits-0.npz", "pack": 2, "metrics": ["train_acc", "valid_acc", "test_acc"]}]},
            "pack=2, but",
        ),
        (
            {"packs": [{"file": "refits-0.npz", "pack": 99, "metrics": ["train_acc", "valid_acc", "test_acc"]}]},
            "pack=99",
        ),
        ({"packs": [{"file": "refits-0.npz", "pack": 0, "metrics": ["latency", "valid_acc", "valid_acc"]}]}, "once"),
        (
            {"packs": [{"file": "forests-1.npz", "pack": 0, "metrics": ["train_acc", "valid_acc", "test_acc"]}]},
            "wants 9",
        ),
        ({"task": "cifar10"}, r"is of task 'cifar10'"),
        ({"format": 2}, r"refits: format 2; this version of jahs reads format 1"),
        ({"facts": 5}, r"refits: a part is missing"),
    ],
    ids=repr,
)
def test_refits_that_do_not_fit_are_refused_at_little_cost(forged, changed, match):
    edit_json(forged, "refits.json", lambda refits: refits.update(changed))

    def act() -> None:
        with pytest.raises((CorruptFile, MissingData, UnknownFormat), match=match):
            jahs.Benchmark("digits", release=forged, refit=0)
        with pytest.raises((CorruptFile, MissingData, UnknownFormat), match=match):
            read_release(forged).check_contents()

    assert peak_memory(act) < 2**25
    assert jahs.Benchmark("digits", release=forged).query(CONFIG).valid_acc > 0


def test_an_array_that_claims_to_be_huge_takes_no_memory(forged):
    path = forged / "refits-0.npz"
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "<f4", "fortran_order": False, "shape": (2**40,)})
    members["node_value.npy"] = buffer.getvalue() + struct.pack("<f", 0.0)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    vouch(forged, "refits-0.npz")

    def act() -> None:
        with pytest.raises(CorruptFile, match=r"refits-0\.npz"):
            jahs.Benchmark("digits", release=forged, refit=0)

    assert peak_memory(act) < 2**25


def test_changed_bytes_that_the_manifest_vouches_for_are_refused_or_answer_within_bounds(attacks, whole, tmp_path):
    folder = Path(shutil.copytree(whole, tmp_path / "digits"))
    for seed, rng in attacks(40):
        name = rng.choice(("refits.json", "refits-0.npz"))
        data = bytearray((whole / name).read_bytes())
        for _ in range(rng.choice((1, 3))):
            data[rng.randrange(len(data))] = rng.randrange(256)
        (folder / name).write_bytes(data)
        vouch(folder, name)

        def act() -> None:
            try:
                query_all(folder)
            except JahsError as err:
                assert str(folder) in str(err), err  # noqa: PT017

        assert processor_time(act) < 5, f"seed {seed}"
        shutil.copy(whole / name, folder / name)
        vouch(folder, name)
