"""The command `jahs import`, from the files to what it prints."""

import argparse
import json
import sys

import pytest

import jahs
from jahs.cli import main
from jahs.cli.arguments import Commands
from jahs.cli.releases import add_commands
from jahs.errors import InvalidArgument, MissingData
from jahs.queries.completing import add_front
from jahs.queries.references import build_references
from tests.jahs.published.test_surrogates import cases
from tests.published_files import METRICS, tar_bytes, write_surrogates, write_tar


def command(*words):
    parser = argparse.ArgumentParser()
    add_commands(Commands(parser))
    arguments = parser.parse_args(["import", *map(str, words)])
    return arguments.command(arguments)


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("published")
    write_surrogates(folder)
    write_surrogates(folder, task="fashion_mnist", n_trees=3)
    return write_tar(folder / "assembled_surrogates", folder / "assembled_surrogates.tar")


def test_surrogates_become_releases_that_a_benchmark_answers_from(archive, tmp_path, capsys):
    said = command(archive, "--out", tmp_path).splitlines()
    assert said == [
        *(f"{task}: {tmp_path / task}" for task in ("cifar10", "fashion_mnist")),
        f'Next: jahs.Benchmark("cifar10", release="{tmp_path}")',
    ]
    assert len(capsys.readouterr().err.splitlines()) == 2 * (len(METRICS) + 1)
    bench = jahs.Benchmark("cifar10", release=tmp_path, engine="numpy")
    configs, epochs = cases()
    found = bench.query_many(configs, each_at=epochs)
    result = bench.query(configs[3], at=epochs[3])
    assert result.as_dict() == {name: values[3] for name, values in found.items()}
    assert result.costs == "published"
    assert set(bench(configs[3], nepochs=epochs[3])[epochs[3]]) == set(METRICS)
    path = bench.trajectory(configs[3])
    assert path["valid_acc"][epochs[3] - 1] == result.valid_acc
    with pytest.raises(MissingData, match=r"seed=1: .*no noise\.json"):
        bench.query(configs[3], seed=1)


def test_an_import_goes_through_where_stderr_is_closed(archive, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    assert main(["import", str(archive), "--out", str(tmp_path), "--task", "cifar10", "--metric", "latency"]) == 0
    assert (tmp_path / "cifar10" / "manifest.json").is_file()


def test_one_task_one_metric_and_the_mode_of_costs_can_be_chosen(archive, tmp_path):
    words = ("--task", "fashion_mnist", "--metric", "runtime", "--metric", "latency", "--costs", "repaired")
    found = json.loads(command(archive, "--out", tmp_path, *words, "--json"))
    assert found == {"fashion_mnist": str(tmp_path / "fashion_mnist")}
    bench = jahs.Benchmark("fashion_mnist", release=tmp_path, engine="numpy")
    assert list(bench.metrics) == ["latency", "runtime", "n_params", "n_macs"]
    assert bench.query(bench.sample(seed=0)).costs == "repaired"


def test_what_is_neither_or_both_is_refused(archive, tmp_path):
    with pytest.raises(MissingData, match=r"holds no model\.pkl\.gz and no raw\.pkl\.gz; see: jahs download"):
        command(tmp_path, "--out", tmp_path)
    both = tmp_path / "both.tar"
    both.write_bytes(tar_bytes({"cifar10/raw.pkl.gz": b"", "cifar10/latency/model.pkl.gz": b""}))
    with pytest.raises(InvalidArgument, match="holds surrogates and tables"):
        command(both, "--out", tmp_path)
    both.write_bytes(tar_bytes({"cifar10/raw.pkl.gz": b""}))
    with pytest.raises(InvalidArgument, match="--metric runtime: a table is imported with all of its metrics"):
        command(both, "--out", tmp_path, "--metric", "runtime")


@pytest.mark.parametrize("words", [("--task", "digits"), ("--costs", "exact")], ids=" ".join)
def test_what_was_not_published_is_refused(archive, tmp_path, words, capsys):
    with pytest.raises(SystemExit):
        command(archive, "--out", tmp_path, *words)
    assert f"argument {words[0]}: invalid choice: '{words[1]}' (choose from " in capsys.readouterr().err


def test_a_table_becomes_runs_and_the_odd_is_said(tmp_path):
    pytest.importorskip("pyarrow")
    from tests.jahs.published.test_table import spoil
    from tests.published_files import frame_bytes
    from tests.published_tables import TASK, make_columns

    columns = make_columns(4)
    spoil(columns, "nan_row")
    path = tmp_path / "metric_data.tar"
    path.write_bytes(tar_bytes({f"metric_data/{TASK.name}/raw.pkl.gz": frame_bytes(columns)}))
    said = command(path, "--out", tmp_path).splitlines()
    folder = tmp_path / "runs" / TASK.name
    assert said[:2] == [
        f"{TASK.name}: {folder}",
        f"{TASK.name}: 797 of 800 rows, 4 of 4 runs, 4 of 4 configs",
    ]
    assert [line.split()[:2] for line in said[2:]] == [["nan_row", "3"]]
    bench = jahs.Benchmark(TASK.name, kind="table", release=folder)
    assert 0 < bench.query(bench.sample(seed=0), at=200).valid_acc < 100


def test_a_front_can_be_searched_for_and_an_import_that_has_one_is_kept(archive, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("jahs.queries.completing._N_CONFIGS", 200)
    words = ("--task", "cifar10", "--with-front")
    command(archive, "--out", tmp_path / "one", *words)
    said = capsys.readouterr().err.splitlines()
    assert said[-2].startswith("cifar10: front: ")
    assert said[-2].endswith(" configs asked")
    assert said[-1] == "cifar10: front: written"
    bench = jahs.Benchmark("cifar10", release=tmp_path / "one", engine="numpy")
    front = bench.front(["valid_acc", "latency"])
    assert len(front.F) > 1
    assert bench.reference_point(["valid_acc", "latency"]).shape == (2,)
    assert bench.reference_config is not None
    assert {key: bench.reference_config[key] for key in ("N", "W", "Resolution")} == {
        "N": 5,
        "W": 16,
        "Resolution": 1.0,
    }
    assert bench.view(search="hpo").space.fixed["Op1"] == bench.reference_config["Op1"]
    before = (tmp_path / "one" / "cifar10" / "manifest.json").read_bytes()
    command(archive, "--out", tmp_path / "one", *words)
    assert capsys.readouterr().err.splitlines()[-1] == "cifar10: the front is there already"
    assert (tmp_path / "one" / "cifar10" / "manifest.json").read_bytes() == before
    assert main(["verify", str(tmp_path / "one" / "cifar10")]) == 0


@pytest.mark.parametrize("workers", [1, 3])
def test_a_front_is_the_same_however_many_threads_look_for_it(archive, tmp_path, workers, monkeypatch):
    monkeypatch.setattr("jahs.queries.completing._PIECE", 7)
    command(archive, "--out", tmp_path, "--task", "cifar10")
    folder = tmp_path / "cifar10"
    expected = build_references(jahs.Benchmark("cifar10", release=folder), n_configs=50, seed=0).to_dict()
    add_front(folder, n_configs=50, workers=workers)
    assert json.loads((folder / "references.json").read_text()) == json.loads(json.dumps(expected))
    assert json.loads((folder / "manifest.json").read_text())["source"] == "imported"


def test_a_release_without_costs_or_a_stopped_search_stays_as_it_was(archive, tmp_path, monkeypatch):
    command(archive, "--out", tmp_path, "--task", "cifar10", "--metric", "valid-acc")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(InvalidArgument, match=r"cifar10: it has no front: .*; leave out --with-front"):
        command(archive, "--out", tmp_path, "--task", "cifar10", "--metric", "valid-acc", "--with-front")
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("content", [b"", b"<html>404</html>" * 99, b"BZh9" + bytes(99), b"\xfd7zXZ\0 no", "cut"])
def test_a_broken_archive_is_one_line_and_leaves_nothing(archive, tmp_path, capsys, content):
    path = tmp_path / "broken.tar"
    path.write_bytes(archive.read_bytes()[:5000] if content == "cut" else content)
    assert main(["import", str(path), "--out", str(tmp_path / "out")]) == 1
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith(f"jahs import: {path} is ")
    assert said.endswith("; fetch it again")
    assert not (tmp_path / "out").exists()


def test_pyarrow_is_missed_before_a_table_is_fetched_or_read(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = tmp_path / "metric_data.tar"
    path.write_bytes(tar_bytes({"cifar10/raw.pkl.gz": b"no table"}))
    assert main(["import", str(path), "--out", str(tmp_path / "out")]) == 1
    url = "http://127.0.0.1:1"  # nobody answers there
    for more in (["--what", "table"], []):
        assert main(["download", "jahs-bench-201", "--dir", str(tmp_path), "--url", url, *more]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert all("needs pyarrow: pip install pyarrow" in line for line in lines)
    assert [found.name for found in tmp_path.iterdir()] == ["metric_data.tar"]


@pytest.mark.parametrize(("kind", "what"), [("surrogate", "surrogates"), ("table", "table")])
def test_a_published_task_without_a_release_comes_with_the_commands_that_get_it(kind, what):
    with pytest.raises(MissingData) as caught:
        jahs.Benchmark("cifar10", kind)
    lines = str(caught.value).splitlines()
    assert [line.split()[:2] for line in lines[2:4]] == [["jahs", "download"], ["jahs", "import"]]
    assert f"--what {what} " in lines[2]
    assert "GB" in lines[4]
    for line in lines[2:4]:  # the command line itself accepts them
        parser = argparse.ArgumentParser()
        add_commands(Commands(parser))
        parser.parse_args(line.split()[1:])
    with pytest.raises(MissingData) as caught:
        jahs.Benchmark("digits")
    assert "\n" not in str(caught.value)
