"""Every Markdown file: links lead somewhere, Python blocks run, and named commands exist."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import pytest

import jahs
from jahs.cli import main

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("data", "docs", "experiments", "integrations", "jahs", "pipeline", "splits", "surrogate", "workshop")
PATHS = [*ROOT.glob("*.md"), *(path for room in ROOMS for path in (ROOT / room).rglob("*.md"))]
FILES = sorted(path.relative_to(ROOT).as_posix() for path in PATHS)

# A cell of a notebook is no Python block: the site runs it, when it is built.
FENCE = re.compile(r"^```(\w*|\{code-cell\} python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?:\]\(|src=\"|srcset=\"|href=\")([^)\s\"]+)")
HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)
WORKSHOPS = {"workshop", "pipeline", "splits", "surrogate", "experiments"}


def read(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8")


def prose(text: str) -> str:
    return FENCE.sub("", text)


def anchors(text: str) -> set[str]:
    """The anchors that a forge gives a file's headings."""
    titles = (re.sub(r"[`*]|\]\([^)]*\)|\[", "", title) for title in HEADING.findall(prose(text)))
    return {re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in titles}


def broken_links(file: str, text: str) -> Iterator[str]:
    for target in LINK.findall(prose(text)):
        if re.match(r"(https?|mailto):", target):
            continue
        path, _, anchor = target.partition("#")
        linked = (ROOT / file).parent / path if path else ROOT / file
        if not linked.exists():
            yield f"{file}: {target}: there is no such file"
        elif anchor and anchor not in anchors(linked.read_text(encoding="utf-8") if path else text):
            yield f"{file}: {target}: there is no such heading"


def python_blocks(text: str) -> list[tuple[str, str | None]]:
    """Each Python block with what it must print: the text block right behind it, or None."""
    fences = list(FENCE.finditer(text))
    blocks = []
    for fence, after in zip_longest(fences, fences[1:]):
        if fence[1] == "python":
            is_output = after is not None and after[1] == "text" and not text[fence.end() : after.start()].strip()
            blocks.append((fence[2], after[2] if is_output and after else None))
    return blocks


def run_blocks(text: str) -> Iterator[tuple[str, str | None]]:
    """Run a file's Python blocks one after the other, as a reader would; yield what each printed and should print."""
    scope: dict[str, object] = {"__name__": "__main__"}
    for code, expected in python_blocks(text):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, "<block>", "exec"), scope)
        yield out.getvalue(), expected


def test_the_files_that_people_read_first_are_among_those_tested() -> None:
    assert {"README.md", "CONTRIBUTING.md", "docs/index.md", "docs/decisions/0001-five-rooms.md"} <= set(FILES)


@pytest.mark.parametrize("file", FILES)
def test_links_lead_somewhere(file: str) -> None:
    assert list(broken_links(file, read(file))) == []


@pytest.mark.parametrize(
    "file",
    # Pages of tools need them; make test-adapters runs those.
    [file for file in FILES if python_blocks(read(file)) and not file.startswith(("docs/adapters/", "integrations/"))],
)
def test_python_blocks_run_and_print_what_the_page_says(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if any("Benchmark(" in code for code, _ in python_blocks(read(file))) and not jahs.releases():
        pytest.skip("no release is embedded, and JAHS_DATA_DIR names none")
    for printed, expected in run_blocks(read(file)):
        assert expected is None or printed == expected


def test_the_optimiser_that_a_page_shows_holds_the_contract_as_it_says(tmp_path: Path) -> None:
    page = tmp_path / "test_page.py"
    page.write_text("\n".join(code for code, _ in python_blocks(read("docs/guides/write-an-optimizer.md"))))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(page)]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout
    assert re.search(r"^[2-9]\d passed", process.stdout, re.MULTILINE), process.stdout


@pytest.mark.parametrize("file", FILES)
def test_no_line_begins_with_a_percent_sign(file: str) -> None:
    assert [line for line in read(file).splitlines() if line.startswith("%")] == []  # the site takes it for a comment


@pytest.mark.parametrize("file", FILES)
def test_every_make_target_that_a_page_names_exists(file: str) -> None:
    named = set(re.findall(r"(?:`|^)make ([a-z-]+)", read(file), re.MULTILINE))
    targets = set(re.findall(r"^([a-z-]+):", read("Makefile"), re.MULTILINE))
    assert named <= targets


@pytest.mark.parametrize("file", FILES)
def test_every_module_that_a_page_says_to_run_exists(file: str) -> None:
    named = re.findall(r"python3? -m ([a-z0-9_.]+)", read(file))
    ours = {name for name in named if name.split(".")[0] in WORKSHOPS | {"jahs"}}
    assert {name for name in ours if importlib.util.find_spec(name) is None} == set()


@pytest.mark.parametrize("file", FILES)
def test_every_jahs_command_that_a_page_shows_works(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shell = "".join(code for language, code in FENCE.findall(read(file)) if language == "sh")
    monkeypatch.chdir(tmp_path)  # some write files
    if "mine.py" in shell:  # the optimiser of the guide
        Path("mine.py").write_text(python_blocks(read("docs/guides/write-an-optimizer.md"))[0][0])
    if "my-log.jsonl" in shell:
        terms = jahs.terms("baselines")
        terms.simulation(0, log="my-log.jsonl").run(jahs.optimizers.make("random_search", terms.view, seed=0))
    for line in re.findall(r"^jahs .*$", shell, re.MULTILINE):
        shorter = re.sub(r"--seeds \d+", "--seeds 2", line)
        assert main(shlex.split(shorter, comments=True)[1:]) == 0
        assert capsys.readouterr().out


def test_a_dead_link_is_found() -> None:
    text = '# A head\n[a](nowhere.md) [b](#a-head) [c](#no-head) [d](README.md) <img src="no.svg">\n'
    assert [line.split(": ")[1] for line in broken_links("README.md", text)] == ["nowhere.md", "#no-head", "no.svg"]


def test_a_block_that_prints_something_else_is_found() -> None:
    text = "```python\nx = 1\nprint(x)\n```\n\n```text\n2\n```\n\nand\n\n```python\nprint(x + 1)\n```\n"
    assert list(run_blocks(text)) == [("1\n", "2\n"), ("2\n", None)]


def test_the_readme_compares_as_the_comparison_page_does() -> None:
    """The page has the same table with one row more, the versions that were looked at."""
    head = "| | JAHS | JAHS-Bench-201 |"
    readme, comparison = (
        read(page)[read(page).index(head) :].partition("\n\n")[0].splitlines()
        for page in ("README.md", "docs/comparison.md")
    )
    assert [line for line in comparison if not line.startswith("| version, date |")] == readme
