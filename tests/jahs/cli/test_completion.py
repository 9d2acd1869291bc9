"""`jahs completion`: what a shell proposes is what the parser accepts."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from jahs.cli import main

NEEDS_BASH = pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")


def complete(script: str, *words: str) -> list[str]:
    """Return what bash proposes for the last word."""
    line = " ".join(f"'{word}'" for word in words)
    ask = f'{script}\nCOMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _jahs; printf "%s\\n" "${{COMPREPLY[@]}}"'
    return subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True).stdout.split()


@NEEDS_BASH
def test_a_shell_proposes_commands_options_and_choices(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    assert sorted(complete(script, "jahs", "qu")) == ["quality", "query"]
    assert {"curves", "front", "--out", "--json"} <= set(complete(script, "jahs", "plot", ""))
    assert complete(script, "jahs", "demo", "--se") == ["--seed"]
    assert complete(script, "jahs", "import", "--costs", "") == ["published", "repaired"]
    assert complete(script, "jahs", "query", "--configs", "") == []  # so the shell completes files
    assert "--at" in complete(script, "jahs", "query", "N=5", "--")
    assert complete(script, "jahs", "nothing", "") == []


def test_zsh_loads_the_same_script(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    bash = capsys.readouterr().out
    assert main(["completion", "zsh"]) == 0
    assert capsys.readouterr().out == f"autoload -U +X bashcompinit && bashcompinit\n{bash}"
