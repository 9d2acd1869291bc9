"""Configs, epochs and what Python answers, for whatever runs the page's script."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

import jahs
from jahs.explorer.page import Subject, join_modules
from jahs.queries.oracles.surrogate import SurrogateOracle
from jahs.spaces.configs import config_codes

NODE = shutil.which("node")
CLOSE = 1e-6


def questions(n: int, max_epoch: int, *, seed: int = 0) -> tuple[list[dict[str, Any]], list[int]]:
    """Random configs, each with a random epoch; the first ones are at corners of the space."""
    configs: list[dict[str, Any]] = list(jahs.space().sample(n, seed=seed))
    default = jahs.space().default()
    for i, op in enumerate(range(5)):
        configs[i] = {**default, **{f"Op{k}": op for k in range(1, 7)}, "LearningRate": 1.0, "WeightDecay": 1e-5}
    return configs, np.random.default_rng(seed).integers(1, max_epoch + 1, n).tolist()


def python_answers(subject: Subject, configs: list[dict[str, Any]], epochs: list[int]) -> dict[str, np.ndarray]:
    """What `jahs.Benchmark.query_many` answers, and the ends of the band of each accuracy."""
    assert subject.release is not None
    oracle = SurrogateOracle(subject.release, engine="numpy")
    X = jahs.encode(configs, np.array(epochs))
    codes = np.array([config_codes(config) for config in configs])
    found = dict(oracle.query_many(codes, np.array(epochs), seed=None, metrics=tuple(oracle.metrics)))
    if subject.release.noise is not None:
        for name, ends in subject.release.noise.interval(found, X).items():
            if name != "runtime":
                found |= {f"{name} {side}": end for side, end in zip(("low", "high"), ends, strict=True)}
    return found


def largest_gap(found: list[dict[str, float]], wanted: dict[str, np.ndarray]) -> dict[str, float]:
    """The largest difference of each metric, relative where the metric is large."""
    gaps = {}
    for name, values in wanted.items():
        own = np.array([each[name] for each in found])
        gaps[name] = float((np.abs(own - values) / np.maximum(1.0, np.abs(values))).max())
    return gaps


def run_node(script: str, folder: Path, modules: tuple[str, ...] = ("data", "model", "space")) -> Any:
    """Run modules, by default those that answer, and a script behind them that prints JSON."""
    assert NODE is not None
    path = folder / "script.mjs"
    path.write_text(join_modules(modules) + script, encoding="utf-8")
    done = subprocess.run([NODE, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)
