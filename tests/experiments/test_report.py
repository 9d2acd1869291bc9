"""The pages of all studies: what they say, that nothing is missing, and that a browser shows it."""

import errno
import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

import jahs
from experiments.analysis.critical_differences import Comparison, compare_groups
from experiments.pack import pack
from experiments.packs import COLUMNS, MANIFEST
from experiments.report import incumbents
from experiments.report.__main__ import main
from experiments.report.baselines import prior_blocks
from experiments.report.build import build_document
from experiments.report.comparison import draw_comparison, groups
from experiments.report.fidelity import _correlation_blocks, rho_at_top, top_correlations, trained_at_full_size
from experiments.report.long import _order_text, worker_blocks
from experiments.report.results import Results, read_results
from experiments.report.writing import write_document
from experiments.studies import STRONG
from experiments.studies import STUDIES as DECLARED
from experiments.worlds import build_worlds
from jahs.errors import CorruptFile, InvalidArgument
from jahs.simulate.answers import redrawn
from jahs.tasks.definitions import TASKS
from surrogate.models.boosting import ForestSettings
from tests.experiments.conftest import TASK, recorded_table, run_study, short_studies
from tests.jahs.models.noise_models import noise_model
from tests.svg_text import texts_outside
from workshop.pages.document import Document, Figure, Section, Table, Text
from workshop.pages.drawing import Curve, draw_curves
from workshop.pages.html import svg_text, to_html
from workshop.pages.markdown import to_markdown
from workshop.pages.style import DARK, LIGHT, css_colors, dash, series

SEEDS = 6
STUDIES = {
    "joint": ["random_search-jahs", "random_search-nas_*", "random_search-hpo_default"],
    "fidelity": ["random_search", "successive_halving-epoch", "successive_halving-diagonal"],
    "multiobjective": ["*-latency"],
    "baselines": ["random_search", "regularized_evolution", "regularized_evolution-tournament-size-*"],
    "truth": ["*-random_search", "*-regularized_evolution", "*-hyperband"],
    "families": ["random_search*", "regularized_evolution*", "hyperband*"],
    "long": ["random_search", "local_search"],
    "workers": ["random_search-*", "asha-*"],
}
NEEDS_CHROMIUM = pytest.mark.skipif(
    not (shutil.which("chromium") or shutil.which("google-chrome")),
    reason="no Chromium is installed (Debian: apt-get install chromium), so no page can be looked at",
)


@pytest.fixture(scope="module")
def short():
    """Budgets of five evaluations, of twenty where these are of smaller networks, and few bootstrap resamples."""
    with short_studies(truth=20), pytest.MonkeyPatch.context() as patch:
        patch.setattr("experiments.analysis.resampled_ranks.N_RESAMPLES", 20)
        yield


@pytest.fixture(scope="module", params=list(STUDIES))
def page(request, release, short, tmp_path_factory):
    out = tmp_path_factory.mktemp("study") / request.param
    if request.param == "truth":
        quick = ForestSettings(n_trees=5, max_depth=3)
        worlds = build_worlds(recorded_table(), TASKS[TASK], noise_model(TASK), n_folds=2, settings=quick)
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "truth":
            patch.setattr("experiments.run.build_worlds", lambda table, task, noise: worlds)
        arms, more = STUDIES[request.param], ("--family", "model-free")
        assert run_study(request.param, out, release, *more, arms=arms, seeds=SEEDS) == 0
    assert report(out, release) == 0
    return out / "report" / "index.html"


def report(study, release, *more):
    return main([str(study), "--release", str(release), "--workers", "1", *map(str, more)])


class Reader(HTMLParser):
    """Collects ids, links, sources and images; finds tags that are not closed."""

    VOID = frozenset({"meta", "link", "br", "img"})

    def __init__(self):
        super().__init__()
        self.ids, self.links, self.labels, self.open, self.faults = [], [], [], [], []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.ids += [given["id"]] if "id" in given else []
        self.links += [value for key, value in attrs if key in {"href", "src", "xlink:href"} and value]
        self.labels += [given.get("aria-label")] if tag == "svg" else []
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(tag)


def read(page):
    reader = Reader()
    reader.feed(page.read_text(encoding="utf-8"))
    return reader


def test_a_page_needs_nothing_but_itself(page):
    text, reader = page.read_text(encoding="utf-8"), read(page)
    assert reader.faults == []
    assert reader.open == []
    assert "<script" not in text
    assert [link for link in reader.links if not link.startswith("#") and link != "data:,"] == []
    assert len(set(reader.ids)) == len(reader.ids)
    assert {link[1:] for link in reader.links if link.startswith("#")} <= set(reader.ids)
    assert set(re.findall(r"url\(#([^)]+)\)", text)) <= set(reader.ids)
    assert "@import" not in text
    outside = set(re.findall(r"https?://[^\s\"'<>)]+", text))
    assert outside <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


def test_the_page_of_a_pack_is_the_page_of_its_logs_byte_for_byte(page, release, tmp_path):
    study = page.parent.parent
    packed = pack(study, tmp_path / "packs")
    assert packed.parent.name == f"{TASK}-test"
    assert report(packed, release) == 0
    wanted, found = (
        {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
        for folder in (page.parent, packed / "report")
    )
    assert found == wanted
    again = pack(study, tmp_path / "again")
    for name in (MANIFEST, *COLUMNS):
        assert (again / name).read_bytes() == (packed / name).read_bytes()


def test_every_colour_of_a_figure_follows_the_readers_mode(page):
    text = page.read_text(encoding="utf-8")
    rules = "".join(re.findall(r"^\.d\d+\{.*\}$", text, re.MULTILINE))
    body = text[text.index("<body>") :] + rules
    assert "var(--s0)" in rules
    assert not [color for color in LIGHT.values() if color in body]


def test_every_figure_is_there_three_times_and_says_what_it_shows(page):
    reader, figures = read(page), page.with_name("figures")
    markdown = page.with_name("report.md").read_text(encoding="utf-8")
    pictures = re.findall(r"!\[([^\]]+)\]\((figures/[^)]+)\)", markdown)
    assert len(pictures) == len(reader.labels) == len(list(figures.glob("*.png"))) == len(list(figures.glob("*.svg")))
    assert pictures
    assert all(label and len(label) > 15 for label in reader.labels)
    for _, target in pictures:
        assert (page.parent / target).stat().st_size > 5000
    assert all((page.parent / link).exists() for link in re.findall(r"\]\((figures/[^)]+\.svg)\)", markdown))


FINDINGS = {
    "joint": r"Joint search ends with a smaller error .* in \d+ of (\d+)\.",
    "multiobjective": r"By mean rank of the covered hypervolume, .* is best in \d+ of (\d+) comparisons.* differ\.",
    "truth": r"Rankings of optimisers by final error on recorded trainings and on the surrogate agree with .* -?\d",
    "families": r"Rankings of optimisers by final error on XGBoost and on LightGBM agree with Kendall's τ -?\d",
    "workers": r"With 64 workers instead of one, the mean final error .* changes by [+-].* points on Fashion",
}


def test_a_page_opens_with_its_finding_in_one_sentence_and_a_figure(page):
    _, finding, figure, *_ = page.with_name("report.md").read_text(encoding="utf-8").split("\n\n")
    study = page.parents[1].name
    assert figure.startswith("![")
    assert len(re.findall(r"[.?!](?= |$)", finding)) == 1
    if study in FINDINGS:
        assert re.match(FINDINGS[study], finding)
        return
    name, error = re.match(
        r"The mean validation error at the end is smallest for (.*) on .* \(([\d.]+) %", finding
    ).groups()
    tables = json.loads(page.with_name("tables.json").read_text())["tables"]
    rows = [row for table in tables if table["columns"][1:2] == ["validation error (%)"] for row in table["rows"]]
    assert len(rows) >= 2
    smallest = min(rows, key=lambda row: float(row[1].split(" ")[0]))
    assert (name.strip("“”"), float(error)) == (smallest[0], pytest.approx(float(smallest[1].split(" ")[0]), abs=0.06))


@pytest.mark.parametrize("page", ["joint"], indirect=True)
def test_what_docs_keep_is_the_same_page_with_svg_figures_alone(page, release, tmp_path):
    kept = tmp_path / "kept"
    assert report(page.parents[1], release, "--out", kept, "--docs") == 0
    figures = sorted(path.name for path in page.with_name("figures").glob("*.svg"))
    assert sorted(path.name for path in kept.rglob("*") if path.is_file()) == sorted([*figures, "report.md"])
    whole = page.with_name("report.md").read_text(encoding="utf-8")
    without_png = re.sub(r" \(\[SVG\]\([^)]+\)\)", "", whole).replace(".png)", ".svg)")
    assert (kept / "report.md").read_text(encoding="utf-8") == without_png


def test_the_page_names_how_to_get_its_numbers_again(page):
    text = page.read_text(encoding="utf-8")
    study = page.parents[1].name
    for fact in (f"python -m experiments.run {study} --seeds {SEEDS}", "commit", "releases", "simulated workers"):
        assert fact in text
    tables = json.loads(page.with_name("tables.json").read_text())["tables"]
    assert all(len(row) == len(table["columns"]) for table in tables for row in table["rows"])
    assert any(table["rows"] for table in tables)
    assert not re.search(r"\bnan\b", text)


def test_a_partly_run_study_has_a_page(page, release, tmp_path):
    """No seed has been finished by every arm."""
    out = tmp_path / page.parents[1].name
    shutil.copytree(page.parents[1], out)
    for number, folder in enumerate(sorted(path for path in (out / TASK).iterdir())):
        for log in folder.glob("*.jsonl"):
            if int(log.stem[-4:]) % 2 != number % 2:
                log.unlink()
    assert report(out, release, "--docs") == 0
    text = (out / "report" / "report.md").read_text(encoding="utf-8")
    assert "No seed has been finished by all of: " in text
    assert "nan" not in re.split(r"\W+", text)


def test_an_arm_that_has_not_been_run_on_a_task_is_left_out_there(page, bench):
    results = read_results(page.parents[1], bench={TASK: bench})
    first = results.arms[0]
    two = replace(
        results,
        tasks=(TASK, "cifar10"),
        by_arm={**results.by_arm, ("cifar10", first.name): results.of(TASK, first)[:1]},
        bench={TASK: bench, "cifar10": bench},
    )
    document = build_document(two)
    assert document.caveats == (TASKS[TASK].caveat,)  # the other task has none
    text = to_markdown(document)
    assert TASKS["cifar10"].title in text
    if results.study.name == "joint":
        assert f"95 % bootstrap intervals over {SEEDS} seeds" in text


def only(study, *names):
    """Results of a study of which only these arms have been run."""
    arms = tuple(study.arm(name) for name in names)
    by_arm = {(TASK, name): () for name in names}
    none = {"folder": None, "on_refits": {}, "bench": {}}
    return Results(study=study, tasks=(TASK,), arms=arms, by_arm=by_arm, **none)


def test_a_chapter_of_which_one_arm_was_run_is_no_reference_for_the_others():
    names = ("random_search-n-macs", "hyperband-n-macs", "nsga2-latency")
    found = {name: [arm.name for arm in arms] for name, arms in groups(only(DECLARED["multiobjective"], *names), TASK)}
    assert [*found.values()] == [["random_search-n-macs", "hyperband-n-macs"]]
    names = ("random_search", "hyperband-epoch", "hyperband-diagonal")
    [(_, arms)] = groups(only(DECLARED["fidelity"], *names), TASK)
    assert tuple(arm.name for arm in arms) == names  # black-box search is declared alone


def test_an_unfinished_study_compares_the_same_seeds_of_all_arms_of_a_chapter(page, bench):
    results = read_results(page.parents[1], bench={TASK: bench})
    first, *others = (arm for arm in results.arms if arm.chapter == results.arms[0].chapter)
    part = {**results.by_arm, (TASK, first.name): results.of(TASK, first)[:2]}
    for arm in (first, *others):
        found = replace(results, by_arm=part).of_chapter(TASK, arm)
        assert [result.repetition.seed for result in found] == [0, 1]


def test_long_runs_have_an_order_only_if_friedmans_test_finds_one(release, short, tmp_path, bench, monkeypatch):
    arms = ["random_search", "local_search", "evolution"]
    assert run_study("long", tmp_path / "long", release, arms=arms, seeds=SEEDS) == 0
    results = read_results(tmp_path / "long", bench={TASK: bench})
    finals = [np.full(SEEDS, error) for error in (30.0, 20.0, 25.0)]
    comparisons = compare_groups([(np.tile([[1.0], [2.0], [3.0]], SEEDS), None), (np.ones((3, SEEDS)), None)])
    said = []
    for found in comparisons:
        monkeypatch.setattr("experiments.report.long.comparison_of", lambda *_, found=found: found)
        said.append(_order_text(results, TASK, results.arms, finals, budget=10_000.0))
    titles = [[part.split(" ")[0] for part in text.rpartition(": ")[2].split(", ")] for text in said]
    assert titles == [["local", "non-regularized", "random"], ["random", "local", "non-regularized"]]
    assert ", from best to worst (Friedman's test: p = 0.002): " in said[0]
    assert ", without a significant order (Friedman's test: p = 1.000): " in said[1]
    assert all("budget of 10,000 mean full evaluations" in text for text in said)


def test_workers_that_lose_trials_at_the_end_show_how_many_have_finished(release, short, tmp_path, bench):
    arms = ["random_search-workers-1", "random_search-workers-16"]
    assert run_study("workers", tmp_path, release, arms=arms, seeds=2) == 0
    results = read_results(tmp_path, bench={TASK: bench})
    (table,) = [block for block in worker_blocks(results) if isinstance(block, Table)]
    column = table.columns.index("finished trials")
    shown = [float(row[column]) for row in table.rows]
    counts = [np.mean([result.n_finished for result in results.of(TASK, arm)]) for arm in results.arms]
    assert shown == pytest.approx(counts, abs=0.5)
    assert counts[1] < np.mean([result.n_trials for result in results.of(TASK, results.arms[1])])


def test_a_page_has_the_words_of_this_version(release, short, tmp_path, bench, monkeypatch):
    assert run_study("long", tmp_path, release, arms=["random_search"], seeds=1) == 0
    results = read_results(tmp_path, bench={TASK: bench})
    reworded = replace(results.study, protocol="It is said in other words now.")
    monkeypatch.setattr("experiments.studies.STUDIES", {"long": reworded})
    assert "It is said in other words now." in to_markdown(build_document(results))


MEASURE = """
onload = () => {
  const found = [...document.querySelectorAll("iframe")].map(frame => {
    const page = frame.contentDocument, labels = [...page.querySelectorAll("svg text")];
    const boxes = [...page.querySelectorAll("svg")].map(figure => figure.getBoundingClientRect());
    return {
      figures: boxes.length,
      smallest: Math.min(...boxes.map(box => Math.min(box.width, box.height))),
      too_wide: page.documentElement.scrollWidth - frame.clientWidth,
      labels: labels.length,
      font: Math.min(...labels.map(label => label.getBoundingClientRect().height)),
    };
  });
  document.querySelector("pre").textContent = JSON.stringify(found);
}
"""


@NEEDS_CHROMIUM
@pytest.mark.slow
def test_a_browser_shows_every_figure_without_a_complaint(page, tmp_path):
    """Frames as wide as a desktop and as a phone hold the page; their parent measures what can be seen."""
    frames = "".join(
        f'<iframe src="file://{page}" style="width:{w}px;height:900px;border:0"></iframe>' for w in (1280, 390)
    )
    probe = tmp_path / "probe.html"
    probe.write_text(f"{frames}<pre></pre><script>{MEASURE}</script>")
    program = shutil.which("chromium") or shutil.which("google-chrome")
    flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    offline = ["--allow-file-access-from-files", "--host-resolver-rules=MAP * ~NOTFOUND"]
    command = [program, *flags, *offline, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", f"file://{probe}"]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True)
    assert [line for line in shown.stderr.splitlines() if "CONSOLE" in line] == []
    desktop, phone = json.loads(re.search(r"<pre>(.+?)</pre>", shown.stdout)[1])
    for found in (desktop, phone):
        assert found["figures"] == len(read(page).labels)
        assert found["smallest"] > 100
        assert found["too_wide"] <= 0  # nothing but tables scrolls sideways, and they do so on their own
        assert found["labels"] >= 10
        assert found["font"] >= 8


def test_an_incumbent_may_be_a_repeated_training_but_not_more_often_than_its_run_has_trials(release, tmp_path):
    out = tmp_path / "joint"
    assert run_study("joint", out, release, arms=["random_search-jahs"], seeds=1) == 0
    bench = jahs.Benchmark(TASK, release=release)
    results = read_results(out, bench={TASK: bench})
    [arm] = results.arms
    [found] = results.of(TASK, arm)

    def trained_again(number):
        answer = bench.query(found.configs[-1], seed=redrawn(found.repetition.seed, number))
        return [replace(found, observed=answer.error, n_trials=3)]

    for number in range(3):
        incumbents._check(results, TASK, arm, trained_again(number))
    with pytest.raises(CorruptFile, match="1 logs of this arm do not match their release"):
        incumbents._check(results, TASK, arm, trained_again(3))


def test_a_folder_without_results_or_of_another_release_is_refused(release, tmp_path, caplog):
    assert main([str(tmp_path)]) == 2
    assert "is not a study" in caplog.text
    out = tmp_path / "joint"
    assert run_study("joint", out, release, arms=["random_search-jahs"], seeds=1) == 0
    assert report(out, release.parent / "plain") == 2
    assert "the logs used release" in caplog.text
    log = out / TASK / "random_search-jahs" / "seed-0000.jsonl"
    pages = [tmp_path / name for name in ("one", "two")]
    for page in pages:
        assert report(out, release, "--out", page) == 0
    assert (pages[0] / "index.html").read_bytes() == (pages[1] / "index.html").read_bytes()  # same logs, same page
    whole = log.read_bytes()
    log.write_bytes(whole[: whole.rindex(b'{"ended"')])
    assert report(out, release) == 2
    assert "was cut short" in caplog.text
    log.write_bytes(re.sub(rb'"valid_acc":([0-9.]+)', b'"valid_acc":99.999', whole))
    assert report(out, release) == 2
    assert "do not match their release" in caplog.text
    log.unlink()
    assert report(out, release) == 2
    assert "has no finished repetition" in caplog.text
    assert not (out / "report").exists()


@pytest.mark.usefixtures("undrawn")
def test_a_page_counts_the_seeds_that_have_ended(release, short, tmp_path):
    out = tmp_path / "joint"
    assert run_study("joint", out, release, arms=["random_search-jahs", "random_search-nas_default"], seeds=3) == 0

    def told():
        assert report(out, release, "--docs") == 0
        text = (out / "report" / "report.md").read_text(encoding="utf-8")
        return re.findall(r"with ([0-9a-z ]+ seeds)\.", text) + re.findall(r"\| seeds \| (\d+ to \d+) \|", text)

    assert told() == ["3 seeds", "0 to 2"]
    (out / TASK / "random_search-jahs" / "seed-0002.jsonl").unlink()
    assert told() == ["2 to 3 seeds", "0 to 2"]
    (out / TASK / "random_search-nas_default" / "seed-0002.jsonl").unlink()
    assert told() == ["2 seeds", "0 to 1"]


def joint(out, release, *, seeds=2):
    return run_study("joint", out, release, arms=["regularized_evolution-jahs"], seeds=seeds)


def test_a_page_names_every_command_commit_and_version(release, tmp_path, short, monkeypatch):
    out = tmp_path / "joint"
    for seeds, commit in ((1, "first"), (2, "second")):
        monkeypatch.setattr("experiments.folder.commit", lambda commit=commit: commit)
        monkeypatch.setattr("experiments.folder.package_versions", lambda commit=commit: {"numpy": commit})
        assert joint(out, release, seeds=seeds) == 0
    assert report(out, release) == 0
    command = "python -m experiments.run joint --seeds {} --arms regularized_evolution-jahs --out DIR"
    facts = {
        "command 1": command.format(1),
        "command 2": f"{command.format(2)} && python -m experiments.report DIR",
        "commit 1": "first",
        "commit 2": "second",
        "versions 1": "numpy first",
        "versions 2": "numpy second",
    }
    markdown = (out / "report" / "report.md").read_text(encoding="utf-8")
    html = (out / "report" / "index.html").read_text(encoding="utf-8")
    for name, value in facts.items():
        assert f"| {name} | {value} |" in markdown
        assert f"<dt>{name}</dt><dd>{value.replace('&', '&amp;')}</dd>" in html


def test_logs_of_one_arm_that_differ_in_their_settings_are_refused(release, tmp_path, short, caplog):
    out = tmp_path / "joint"
    assert joint(out, release) == 0
    log = out / TASK / "regularized_evolution-jahs" / "seed-0001.jsonl"
    log.write_text(log.read_text().replace('"tournament_size":5', '"tournament_size":4', 1))
    assert report(out, release) == 2
    assert "the arm regularized_evolution-jahs was run with several settings of its optimiser: " in caplog.text
    assert "tournament_size=5 and 4, in " in caplog.text
    assert "remove all logs with one of them and run again" in caplog.text
    log.unlink()
    assert report(out, release) == 0


PAGE = Document(title="t", subtitle="s", sections=())


@pytest.mark.parametrize("n_before", [0, 1])
def test_a_page_that_cannot_take_its_place_leaves_the_old_one(tmp_path, monkeypatch, n_before):
    target, rename, n_renamed = tmp_path / "page", Path.replace, []
    old = write_document(replace(PAGE, title="old"), target, is_for_docs=True).read_text()

    def fail(path, to):
        n_renamed.append(path)
        if len(n_renamed) == n_before + 1:
            raise OSError(errno.EIO, "Input/output error")
        return rename(path, to)

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(InvalidArgument, match="page cannot be written: Input/output error"):
        write_document(PAGE, target, is_for_docs=True)
    assert (target / "report.md").read_text() == old
    assert [path.name for path in tmp_path.iterdir()] == ["page"]
    monkeypatch.undo()
    assert write_document(PAGE, target, is_for_docs=True).read_text() != old
    assert [path.name for path in tmp_path.iterdir()] == ["page"]


def test_a_page_that_another_process_writes_is_left_alone(tmp_path):
    (tmp_path / ".page.1.part").mkdir()
    (tmp_path / ".page.part").mkdir()
    write_document(PAGE, tmp_path / "page", is_for_docs=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".page.1.part", ".page.part", "page"]


def test_text_is_text_on_the_page_and_in_markdown():
    drawing = draw_curves([Curve(title="<b>", x=np.arange(3.0), y=np.arange(3.0))], x_label="x", y_label="y")
    blocks = (
        Text(text="1 < 2 & 3", is_answer=True),
        Table(caption="a | b", columns=("<i>", "n"), rows=(("x|y", "1"),)),
        Figure(name="f", caption="c", alt='say "hi"', drawing=drawing),
    )
    document = Document(title="T & t", subtitle="s", sections=(Section(title="One <two>", blocks=blocks),))
    page = to_html(document, {"f": svg_text(blocks[-1])})
    assert "1 &lt; 2 &amp; 3" in page
    assert "<i>" not in page
    assert "<b>" not in page
    assert 'aria-label="say &quot;hi&quot;"' in page
    markdown = to_markdown(document)
    assert "| x\\|y | 1 |" in markdown
    assert "**1 < 2 & 3**" in markdown


def test_series_differ_in_colour_or_dash_and_modes_have_the_same_colours():
    looks = [(series(i), str(dash(i))) for i in range(20)]
    assert len(set(looks)) == 20
    assert LIGHT.keys() == DARK.keys()
    assert len(set(LIGHT.values())) == len(LIGHT)
    assert css_colors(f"fill: {LIGHT['ink']}") == "fill: var(--ink)"


def test_a_wide_table_shows_that_it_can_be_scrolled_and_a_figure_s_file_follows_the_dark_mode(tmp_path):
    table = Table(caption="", columns=("a",), rows=(("1",),))
    figure = Figure(name="f", caption="", alt="", drawing=draw_curves([], x_label="x", y_label="y"))
    document = Document(title="t", subtitle="", sections=(Section(title="s", blocks=(table, figure)),))
    page = write_document(document, tmp_path / "page", is_for_docs=False).read_text(encoding="utf-8")
    assert "background-attachment:local,local,scroll,scroll" in page
    assert "prefers-color-scheme:dark" in (tmp_path / "page/figures/f.svg").read_text(encoding="utf-8")


def test_a_critical_difference_diagram_draws_a_bar_for_each_clique():
    rng = np.random.default_rng(0)
    values = np.stack([rng.normal(0, 1, 20), rng.normal(0, 1, 20), rng.normal(9, 1, 20)])
    found = compare_groups([(values, None)])[0]
    drawing = draw_comparison(found, ["a", "b", "c"])
    bars = [line for line in drawing.axes[0].lines if line.get_linewidth() == 4]
    assert len(bars) == len(found.cliques) == 1
    left, right = bars[0].get_xdata()
    assert left < found.mean_ranks[:2].min() < found.mean_ranks[:2].max() < right < found.mean_ranks[2]


@pytest.mark.parametrize("title", ["a", "NAS only, random hyperparameters", "a" * 60])
@pytest.mark.parametrize("rank", [1.03, 2.99, 3.23, 4.97])
def test_a_critical_difference_diagram_cuts_no_label_off(title, rank):
    mean_ranks = np.array([1.0, 2.0, rank, 4.0, 5.0])
    comparison = Comparison(
        mean_ranks=mean_ranks, pairs=(), cliques=(), alpha=0.05, n_family=0, n_blocks=30, p_friedman=0.01
    )
    drawing = draw_comparison(comparison, [title] * 5)
    assert texts_outside(svg_text(Figure(name="d", caption="", alt="", drawing=drawing))) == []


def test_ranks_at_the_top_are_those_of_the_best_configs_alone():
    rng = np.random.default_rng(0)
    high = rng.permutation(1000).astype(float)

    def rhos_at_top(low, high):
        return np.array([found.value for found in rho_at_top(low, high)])

    assert rhos_at_top(high, high) == pytest.approx(1.0)
    low = np.where(high >= 900, -high, high)  # the best tenth is in reverse order
    rhos = rhos_at_top(low, high)
    assert rhos[-2:] == pytest.approx(-1.0)
    assert rhos[2] == pytest.approx(spearmanr(low[high >= 750], high[high >= 750]).statistic)
    assert np.isnan(rhos_at_top(high[:90], high[:90])).tolist() == [False, False, False, True, True]


def test_trainings_stand_beside_predictions_of_the_same_configs(release):
    bench = jahs.Benchmark(TASK, release=release)
    recorded, trained = trained_at_full_size(bench)
    assert trained.shape == (len(recorded["N"]), bench.max_epoch)
    assert {*recorded["N"].tolist(), *recorded["W"].tolist()} <= {5, 16}
    table = jahs.Benchmark(TASK, kind="table", release=release)
    for row, accuracies in enumerate(trained):
        config = {name: values[row].item() for name, values in recorded.items()}
        assert table.query(config, seed=0).valid_acc == accuracies[-1]
    rows = [(low, of, n) for low, of, n, _ in top_correlations(bench)]
    assert (("epoch 1", "trained", len(trained)) in rows) == bool(len(trained))
    assert len(rows) == len(set(rows))


def test_rank_correlations_have_intervals_unless_a_fidelity_is_compared_with_itself(release):
    lowest, _, top, numbers = _correlation_blocks(jahs.Benchmark(TASK, release=release))
    interval = re.compile(r"-?\d\.\d+ \(-?\d\.\d+ to -?\d\.\d+\)")
    assert len(re.findall(rf"\w+ {interval.pattern} at \d", lowest.text)) == 5
    cells = [cell for row in top.rows for cell in row[3:]]
    assert all(cell == "–" or interval.fullmatch(cell) for cell in cells)
    assert sum(cell != "–" for cell in cells) >= 90  # nine lower fidelities, means and draws, five shares
    for _, _, tau, cost in numbers.rows:
        assert tau == "1.00" if cost == "100.0 %" else interval.fullmatch(tau)


@pytest.mark.parametrize(("gap", "verdict"), [(5.0, "The prior matters."), (0.0, "No effect of the prior is shown.")])
def test_the_quality_of_a_prior_is_compared_beside_the_other_arms(gap, verdict, monkeypatch):
    arms = [arm for arm in STRONG.arms if arm.optimizer in ("random_search", "neps_priorband")]
    errors = np.random.default_rng(0).normal(30.0, 0.1, (len(arms), 12))
    errors[-1] += gap  # the bad prior
    comparison = compare_groups([(errors, None)])[0]
    monkeypatch.setattr("experiments.report.baselines.finals", lambda *_: (errors, None))
    monkeypatch.setattr("experiments.report.baselines.comparison_of", lambda *_: comparison)
    (text,) = prior_blocks(None, TASK, arms)
    assert text.text.startswith(
        f"Mean final errors by prior: PriorBand, good prior {errors[1].mean():.2f} %, PriorBand"
    )
    assert text.text.endswith(f"PriorBand, bad prior {errors[3].mean():.2f} %. {verdict}")
    assert list(prior_blocks(None, TASK, arms[:2])) == []
