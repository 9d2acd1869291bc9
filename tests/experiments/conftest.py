"""One small release for all tests of the experiments: quick to ask, with noise, references and recorded runs.

Tests of `jahs`, which run with numpy alone, use it, too; so the rooms are imported where they are needed.
"""

from contextlib import contextmanager
from dataclasses import replace

import pytest

import jahs
from jahs.queries.references import build_references
from jahs.release import RecordedTable
from jahs.tasks.definitions import TASKS
from tests.jahs.models.noise_models import noise_model
from tests.releases import make_release
from tests.surrogate import landscape

TASK = "fashion_mnist_mini"
N_REFITS = 2


@pytest.fixture(scope="session")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("release")
    parts = {"task": TASK, "n_trees": 10, "depth": 3, "table": recorded_table()}
    parts["facts"] = {"protocol": landscape.PROTOCOL}
    bench = jahs.Benchmark(TASK, release=make_release(folder / "plain", **parts), engine="numpy")
    references = build_references(bench, n_configs=300, seed=0, n_rounds=1).to_dict()
    more = {"references": references, "has_lightgbm": True}
    return make_release(folder / TASK, noise=noise_model(TASK).to_dict(), **more, **parts)


@pytest.fixture(scope="session")
def release_with_refits(tmp_path_factory):
    folder = tmp_path_factory.mktemp("with-refits") / TASK
    return make_release(folder, task=TASK, n_trees=10, depth=3, noise=noise_model(TASK).to_dict(), n_refits=N_REFITS)


@pytest.fixture
def undrawn(monkeypatch):
    """Empty drawings, for tests that read the text of a page alone."""
    monkeypatch.setattr("experiments.report.writing.svg_text", lambda _figure: "<svg></svg>")


@pytest.fixture(scope="session")
def bench(release):
    return jahs.Benchmark(TASK, release=release)


def recorded_table() -> RecordedTable:
    """Every epoch of three configs in each fidelity group."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(landscape, "TASK", TASKS[TASK])
        patch.setattr(landscape, "EPOCHS", tuple(range(1, TASKS[TASK].max_epoch + 1)))
        measured = landscape.measurements(3)
    return RecordedTable(configs=measured.configs, runs=measured.runs, profile=measured.profile)


def page_written_twice(main, arguments, folder):
    """Write a page twice, require the same bytes, and return its files by name."""
    for name in ("one", "two"):
        assert main([*arguments, "--out", str(folder / name)]) == 0
    one, two = ({path.name: path.read_bytes() for path in (folder / name).rglob("*.*")} for name in ("one", "two"))
    assert one == two
    return one


def run_study(name, out, release, *more, arms, seeds):
    """Run some arms of a study in this process; return the exit status."""
    from experiments.run import main

    patterns = [word for arm in arms for word in ("--arms", arm)]
    given = ["--seeds", seeds, "--workers", 1, "--release", release, "--out", out, *more]
    return main([name, *patterns, *map(str, given)])


@contextmanager
def short_studies(n_evaluations=5, **others):
    """Give every study a budget of so many evaluations; `others` by name."""
    from experiments import studies

    short = {
        name: replace(study, n_evaluations=others.get(name, n_evaluations)) for name, study in studies.STUDIES.items()
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(studies, "STUDIES", short)
        yield


def short_study(name, folder, release, *, arms, seeds):
    """Run some arms of a short study in this process; return the folder of the study."""
    with short_studies():
        assert run_study(name, folder / name, release, arms=arms, seeds=seeds) == 0
    return folder / name
