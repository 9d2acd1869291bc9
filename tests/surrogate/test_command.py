"""The arguments that the commands share: one clear line for bad input."""

from __future__ import annotations

from pathlib import Path

import pytest

from jahs.files.sealed_json import sealed_text
from surrogate import release, tune
from tests.surrogate.landscape import arguments, measurements

MEASURED = measurements(10)


def test_too_few_configs_in_a_group_are_refused(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for main in (release.main, tune.main):
        assert main([*arguments(runs, tmp_path / "out"), "--fewest", "8"]) == 2
        assert "27 of 27 fidelity groups have fewer than 8 training configs: N=1 W=4" in capsys.readouterr().err
        assert not list(tmp_path.iterdir())


def test_unknown_metrics_optimizers_settings_and_numbers_are_refused(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    params = tmp_path / "params.json"
    params.write_text(sealed_text({"metrics": {"valid_acc": {"max_depth": 99}, "speed": {}}}))
    out = tmp_path / "out"
    for main, extra, message in (
        (tune.main, ["--metrics", "valid-acc"], "metric='valid-acc' does not exist (did you mean 'valid_acc'?)"),
        (release.main, ["--params", str(params)], "max_depth=99 must be an integer in 1..15"),
        (release.main, ["--params", str(params)], "'speed' is not a learned metric"),
        (release.main, ["--params", str(tmp_path / "none.json")], "none.json does not exist"),
        (tune.main, ["--trees", "0"], "n_trees=0 must be an integer in 1..10000"),
        (tune.main, ["--workers", "0", "--evaluations", "-1"],
         "must be an integer in 1..2**31-1\nsurrogate.tune: workers=0 must be"),
    ):  # fmt: skip
        assert main([*arguments(runs, out), *extra]) == 2
        assert message in capsys.readouterr().err
        assert not out.exists()
