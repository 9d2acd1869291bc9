"""Releases whose digests fit, but whose meaning does not, and files that change between the check and the reading."""

from __future__ import annotations

import os
import shutil
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import jahs
from jahs.errors import CorruptFile, InvalidArgument, JahsError, ProtocolMismatch
from jahs.files.hashing import sha256_file
from jahs.release import EMBEDDED, read_release
from tests.releases import edit_json, make_release

MINUTES = float(os.environ.get("JAHS_ATTACK_MINUTES", "0"))
EMBEDDED_FOLDER = Path(jahs.__file__).parent / "releases"


@pytest.fixture
def forged(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EMBEDDED_FOLDER / "fashion_mnist_mini", tmp_path / "release"))


@pytest.mark.parametrize(
    ("metric", "changed"),
    [
        ("valid_acc", None),
        ("latency", None),
        ("valid_acc", {"lower": -500.0}),
        ("valid_acc", {"upper": 100.5}),
        ("latency", {"lower": -1.0}),
        ("runtime", {"lower": -1e-9}),
        ("test_acc", {"published": True}),
    ],
)
def test_models_whose_answers_may_leave_the_metric_s_bounds_are_refused(forged, metric, changed):
    def change_transform(models):
        entry = models["metrics"][metric]
        entry["transform"] = None if changed is None else {**entry["transform"], **changed}

    edit_json(forged, "models.json", change_transform)
    with pytest.raises(CorruptFile, match=rf"models\.json: metric '{metric}'"):
        jahs.Benchmark("fashion_mnist_mini", release=forged)


def test_an_accuracy_that_is_multiplied_by_the_epoch_is_refused(forged):
    edit_json(forged, "models.json", lambda models: models["metrics"]["valid_acc"].update(target="per_epoch"))
    with pytest.raises(CorruptFile, match=r"metric 'valid_acc': target='per_epoch' multiplies by the epoch.* 100"):
        jahs.Benchmark("fashion_mnist_mini", release=forged)


@pytest.mark.parametrize("scale", [0.0, 0, -1.0, 10**400], ids=["zero", "integer", "negative", "huge"])
def test_a_published_scale_by_which_nothing_can_be_divided_is_refused(forged, scale):
    edit_json(forged, "models.json", lambda models: models["metrics"]["valid_acc"].update(published_scale=scale))
    with pytest.raises(CorruptFile, match=r"metric 'valid_acc': published_scale=.* is not a finite number above 0"):
        jahs.Benchmark("fashion_mnist_mini", release=forged)


def test_a_release_does_not_call_itself_imported_to_have_no_bounds(forged):
    edit_json(forged, "models.json", lambda models: models.update(costs="published"))
    with pytest.raises(CorruptFile, match="fashion_mnist_mini is not one of its tasks"):
        jahs.Benchmark("fashion_mnist_mini", release=forged)


@pytest.mark.parametrize("task", ["digits", "cifar10", "fashion_mnist"])
def test_a_release_is_not_opened_as_one_of_another_task(forged, task, tmp_path):
    edit_json(forged, "manifest.json", lambda manifest: manifest.update(task=task))
    with pytest.raises(CorruptFile, match=f"own_task is 'fashion_mnist_mini', but task is '{task}'"):
        jahs.Benchmark(task, release=forged)
    edit_json(forged, "manifest.json", lambda manifest: manifest.pop("own_task"))
    with pytest.raises(CorruptFile, match=rf"noise\.json is of task 'fashion_mnist_mini', but .* '{task}'"):
        jahs.Benchmark(task, release=forged)
    plain = make_release(tmp_path / "plain", task="fashion_mnist_mini")  # without noise, the models say it
    edit_json(plain, "manifest.json", lambda manifest: manifest.update(task=task))
    with pytest.raises(CorruptFile, match=r"models\.json is of task"):
        jahs.Benchmark(task, release=plain)


@pytest.mark.parametrize("n_epochs", [12, 40])
def test_noise_has_the_epochs_of_its_task(forged, n_epochs):
    def stretch(noise):
        noise["max_epoch"] = n_epochs
        for spread in [spread for kinds in noise["accuracies"].values() for spread in kinds.values()]:
            spread["epoch"] = np.resize(spread["epoch"], n_epochs).tolist()

    edit_json(forged, "noise.json", stretch)
    said = rf"noise\.json has max_epoch={n_epochs}, but fashion_mnist_mini has 27 epochs"
    with pytest.raises(CorruptFile, match=said):
        jahs.Benchmark("fashion_mnist_mini", release=forged)
    with pytest.raises(CorruptFile, match=said):
        read_release(forged).verify()


def test_a_table_of_another_protocol_is_refused(forged):
    edit_json(forged, "manifest.json", lambda manifest: manifest.update(protocol="0" * 16))
    with pytest.raises(CorruptFile, match=r"runs have protocol .*, but manifest\.json says 0000000000000000"):
        jahs.Benchmark("fashion_mnist_mini", kind="table", release=forged)


@pytest.mark.parametrize("what", ["file", "folder", "link", "linked file", "link to a folder", "hidden"])
def test_verify_refuses_what_does_not_belong_to_a_release(forged, what, tmp_path):
    stranger = forged / ("models.json" if what == "linked file" else ".hidden" if what == "hidden" else "stranger")
    if what == "folder":
        stranger.mkdir()
    elif what in {"file", "hidden"}:
        stranger.touch()
    elif what == "linked file":
        stranger.rename(tmp_path / "models.json")
        stranger.symlink_to(tmp_path / "models.json")
    else:
        stranger.symlink_to(tmp_path if what == "link to a folder" else forged / "models.json")
    with pytest.raises(CorruptFile, match="is a link" if what == "linked file" else f"{stranger.name} not among the"):
        read_release(forged).verify()


def test_a_release_is_pinned_by_its_digest(forged):
    sha256 = EMBEDDED["fashion_mnist_mini"]
    assert (
        jahs.Benchmark("fashion_mnist_mini", release=forged, sha256=sha256).query(jahs.space().default()).valid_acc > 0
    )
    edit_json(forged, "manifest.json", lambda manifest: manifest.update(version="0.1.1"))
    with pytest.raises(ProtocolMismatch, match=f"has sha256 .*, but sha256={sha256} was required; give the folder"):
        jahs.Benchmark("fashion_mnist_mini", release=forged, sha256=sha256)
    for wrong in ("", sha256.upper(), sha256[:-1], 5):
        with pytest.raises(InvalidArgument, match="is not 64 lower-case hex digits"):
            jahs.Benchmark("fashion_mnist_mini", release=forged, sha256=wrong)
    with pytest.raises(InvalidArgument, match="kind='live' trains"):
        jahs.Benchmark("fashion_mnist_mini", kind="live", sha256=sha256)


def test_the_digests_of_the_embedded_releases_are_in_the_code():
    digests = {path.parent.name: sha256_file(path) for path in EMBEDDED_FOLDER.glob("*/manifest.json")}
    lines = "\n".join(f'        "{task}": "{digest}",' for task, digest in sorted(digests.items()))
    assert digests == EMBEDDED, f"EMBEDDED in jahs/release/find.py must hold\n{lines}"


def test_bytes_that_were_not_hashed_never_answer(tmp_path):
    """While a thread swaps the forests for others, each opened release gives the right answer, or an error."""
    good = make_release(tmp_path / "good", seed=0)
    other = make_release(tmp_path / "other", seed=1)
    config = jahs.space().default()
    expected = jahs.Benchmark("digits", release=good, engine="numpy").query(config)
    assert jahs.Benchmark("digits", release=other, engine="numpy").query(config) != expected
    files = [good / "forests-0.npz", other / "forests-0.npz"]
    contents = [path.read_bytes() for path in files]
    size = max(map(len, contents))
    assert size
    is_over = threading.Event()

    def swap() -> None:
        turn = 0
        while not is_over.is_set():
            turn = 1 - turn
            beside = tmp_path / "beside"
            beside.write_bytes(contents[turn])
            beside.replace(files[0])
            time.sleep(float(np.random.default_rng(turn).uniform(0, 0.002)))

    thread = threading.Thread(target=swap)
    thread.start()
    n_answers, end = 0, time.monotonic() + max(3.0, 60 * MINUTES)
    try:
        while time.monotonic() < end:
            try:
                answer = jahs.Benchmark("digits", release=good, engine="numpy").query(config)
            except JahsError:  # refused, as it should be
                continue
            assert answer == expected
            n_answers += 1
    finally:
        is_over.set()
        thread.join()
    assert n_answers
