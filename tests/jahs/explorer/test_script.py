"""The page's script without a browser: its form, and answers that are Python's."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import jahs
from jahs.explorer import read_subject
from jahs.explorer.arrays import fact_arrays, model_parts, pack_arrays
from jahs.explorer.page import MODULES, WEB, Subject, join_modules, space_facts
from jahs.explorer.trace import feature_script
from jahs.models.features import GROUPS, FeatureBuilder, FeatureSet, schedule
from jahs.release import read_release
from jahs.tasks.definitions import TASKS
from tests.jahs.explorer.golden import CLOSE, NODE, largest_gap, python_answers, questions, run_node
from tests.jahs.models.noise_models import noise_model
from tests.releases import make_release

SPACE = space_facts() | {"task": {"name": "any"}}
NEEDS_NODE = pytest.mark.skipif(NODE is None, reason="node is not installed (Debian: apt-get install nodejs)")

ASK = """
const model = new Model(facts, unpack(facts.arrays, await inflate(decodeBase64(blob))), new Space(space), features);
console.log(JSON.stringify(configs.map((config, i) => {
  const x = model.prepare(config);
  const found = { n_params: x.n_params, n_macs: x.n_macs };
  for (const name of model.metrics) {
    found[name] = model.answer(x, name, epochs[i]);
    const band = model.band(x, name, epochs[i], found[name]);
    if (band) [found[`${name} low`], found[`${name} high`]] = band;
  }
  return found;
})));
"""


def constants(**values: object) -> str:
    return "".join(f"const {name} = {json.dumps(value)};\n" for name, value in values.items())


def check_answers(subject: Subject, folder: Path, *, n: int) -> None:
    configs, epochs = questions(n, subject.task.max_epoch)
    facts, arrays, features = model_parts(subject.release)
    facts["arrays"], blob = pack_arrays(arrays, compressed=True)
    given = constants(facts=facts, blob=blob, configs=configs, epochs=epochs, space=SPACE)
    found = run_node(features + given + ASK, folder)
    gaps = largest_gap(found, python_answers(subject, configs, epochs))
    assert max(gaps.values()) < CLOSE, gaps


@NEEDS_NODE
def test_the_embedded_release_answers_as_in_python(tmp_path):
    check_answers(read_subject("fashion_mnist_mini"), tmp_path, n=1000)


@NEEDS_NODE
@pytest.mark.parametrize("noise", [None, noise_model("digits", max_epoch=12).to_dict()])
def test_any_release_answers_as_in_python(tmp_path, noise):
    path = make_release(tmp_path / "release", noise=noise, depth=6)
    subject = Subject(task=TASKS["digits"], table=None, release=read_release(path), without_models=None)
    check_answers(subject, tmp_path, n=300)


@NEEDS_NODE
@pytest.mark.parametrize("is_canonical", [False, True])
def test_every_feature_has_the_bits_that_python_gives_it(tmp_path, is_canonical):
    columns = tuple(dict.fromkeys(name for names in GROUPS.values() for name in names))
    features, task = FeatureSet(name="all", columns=columns, is_canonical=is_canonical), TASKS["fashion_mnist_mini"]
    configs, epochs = questions(300, task.max_epoch, seed=1)
    script, facts = feature_script([features])
    places, blob = pack_arrays(fact_arrays(facts, task), compressed=False)
    model = {"widths": [], "metrics": {}, "facts": facts, "schedule": schedule(task.max_epoch)}
    asked = constants(configs=configs, epochs=epochs, width=len(columns), space=SPACE)
    given = asked + constants(facts=model, places=places, blob=blob)
    ask = """
const model = new Model(facts, unpack(places, decodeBase64(blob)), new Space(space), features);
model.rows = [new Float32Array(width)];
model.filled = [[]];
console.log(JSON.stringify(configs.map((config, i) => Array.from(model.row(model.prepare(config), epochs[i], 0)))));
"""
    found = np.array(run_node(script + given + ask, tmp_path), np.float32)
    wanted = FeatureBuilder(features, task).build(jahs.encode(configs, np.array(epochs)))
    wrong = [name for name, own, his in zip(columns, found.T, wanted.T, strict=True) if (own != his).any()]
    assert wrong == []


@NEEDS_NODE
def test_moves_and_codes_are_those_of_the_space(tmp_path):
    configs, _ = questions(50, 12, seed=2)
    given = constants(space=SPACE, configs=configs)
    ask = """
const one = new Space(space);
console.log(JSON.stringify(configs.map((config) => [
  one.neighbors(config).map((each) => each.config), Object.values(one.codes(config)), one.toPython(config),
])));
"""
    for config, (near, codes, text) in zip(configs, run_node(given + ask, tmp_path), strict=True):
        assert near == jahs.space().neighbors(config)
        assert np.float32(codes).tolist() == jahs.encode([config], 1)[0, :-1].tolist()
        named: dict[str, object] = {}
        exec(text.replace("print(", "answer = ("), {"jahs": None, "__builtins__": {"__import__": _no_jahs}}, named)
        assert named["config"] == config


@NEEDS_NODE
def test_what_python_refuses_is_refused_with_every_fault(tmp_path):
    config = jahs.space().sample(seed=0)
    without_n = {key: value for key, value in config.items() if key != "N"}
    asked = [(config, epoch) for epoch in (1, 27, 0, -3, 2.5, 28, "5", None)]
    asked += [(each, 1) for each in ({**config, "N": 4}, {**config, "LearningRate": 5}, without_n, None, 3)]
    asked += [({**config, "toString": 1, "Op1": "3"}, 0)]
    given = constants(space=SPACE, asked=asked)
    ask = """
console.log(JSON.stringify(asked.map(([config, epoch]) => {
  try {
    return new Space(space).check(config, epoch, 27) ?? "";
  } catch (error) {
    return `${error}`;
  }
})));
"""
    found = run_node(given + ask, tmp_path)
    assert found[:2] == ["", ""]
    assert found[2:8] == ["RangeError: epoch must be an integer in 1..27"] * 6
    assert found[8:11] == [
        "RangeError: N must be one of 1, 3, 5",
        "RangeError: LearningRate must be a number in [0.001, 1]",
        "RangeError: N must be one of 1, 3, 5",
    ]
    assert [each.count("must be") for each in found[11:13]] == [14, 14]
    assert found[13] == (
        "RangeError: toString is not a key of a config; Op1 must be one of 0, 1, 2, 3, 4; "
        "epoch must be an integer in 1..27"
    )


@NEEDS_NODE
def test_local_search_trains_no_config_twice_in_a_climb(tmp_path):
    given = constants(space=SPACE, n=500)
    ask = """
const search = localSearch(new Space(space), seeded(0), 27);
let asked = search.next().value;
console.log(JSON.stringify(Array.from({ length: n }, (_, accuracy) => {
  const { config } = asked;
  asked = search.next(accuracy).value; // each is better than the one before, so that the climb does not end
  return config;
})));
"""
    configs = run_node(given + ask, tmp_path, modules=("space", "race"))
    assert len({tuple(config.values()) for config in configs}) == 500


def _no_jahs(name, *args):
    class Benchmark:
        def __init__(self, task):
            assert task == "any"

        def query(self, config):
            return None

    return type("jahs", (), {"Benchmark": Benchmark})


@NEEDS_NODE
@pytest.mark.parametrize("name", [*MODULES, "all"])
def test_node_accepts_the_script(tmp_path, name):
    path = tmp_path / f"{name}.mjs"
    path.write_text(join_modules() if name == "all" else (WEB / f"{name}.js").read_text(encoding="utf-8"))
    done = subprocess.run([NODE, "--check", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", sorted(WEB.iterdir()), ids=lambda path: path.name)
def test_sources_are_formatted(path):
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    assert [line for line in lines if line != line.rstrip() or "\t" in line] == []
    if path.suffix != ".html":
        assert [line for line in lines if len(line) > 120] == []
    if path.suffix == ".js":
        assert text.startswith("// ")
        assert [
            line for line in lines if re.search(r"^\s*(var |if \(.*\) \{.*\}$)|console\.|[^=!]==[^=]|!=[^=]", line)
        ] == []


def test_modules_import_what_earlier_ones_export_and_nothing_is_exported_in_vain():
    used: set[tuple[str, str]] = set()
    exported: dict[str, set[str]] = {}
    for name in MODULES:
        text = (WEB / f"{name}.js").read_text(encoding="utf-8")
        for names, module in re.findall(r'^import \{ ([\w, ]+) \} from "\./(\w+)\.js";$', text, re.MULTILINE):
            used |= {(module, each) for each in names.split(", ")}
            assert MODULES.index(module) < MODULES.index(name)
            assert set(names.split(", ")) <= exported[module]
            assert all(len(re.findall(rf"\b{each}\b", text)) > 1 for each in names.split(", "))
        found = re.findall(r"^export (?:async )?(?:function\*?|class|const) (\w+)", text, re.MULTILINE)
        exported[name] = set(found)
    unused = {(name, each) for name, names in exported.items() for each in names} - used
    assert unused == set()
