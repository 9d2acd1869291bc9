"""Write the YAML of every task: `python -m jahs_carps.make_tasks`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import yaml
from carps.utils.task import get_search_space_info

import jahs
from jahs.adapters.evaluating import make_evaluator
from jahs_carps.objective_function import make_configspace

FOLDER: Final = Path(__file__).parent / "configs" / "task" / "JAHS"
N_TRIALS: Final = 100  # full evaluations, as in JAHS-Bench-201

_ALL: Final = ("epoch", "N", "W", "Resolution")
_KINDS: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...], bool]]] = {
    "blackbox": (("valid_acc",), ("epoch",), False),
    "multifidelity": (("valid_acc",), ("epoch",), True),
    "multifidelity_sizes": (("valid_acc",), _ALL, True),
    "multiobjective": (("valid_acc", "latency"), ("epoch",), False),
    "multifidelity_multiobjective": (("valid_acc", "latency"), ("epoch",), True),
}
TASKS: Final = tuple(f"{name}_{kind}" for name in ("fashion_mnist_mini", "cifar10_mini") for kind in _KINDS)
"""Names of the tasks: a benchmark, and what is searched in it."""


def make_task(name: str) -> str:
    """Return the YAML of a task."""
    kind = max((kind for kind in _KINDS if name.endswith(f"_{kind}")), key=len)
    benchmark = name.removesuffix(f"_{kind}")
    metrics, fidelities, is_multifidelity = _KINDS[kind]
    view = jahs.Benchmark(benchmark).view(fidelities=fidelities)
    space = make_configspace(view)
    objectives = list(make_evaluator(view, metrics).names)
    task = {
        "_target_": "carps.utils.task.Task",
        "name": name,
        "seed": "${seed}",
        "objective_function": {
            "_target_": "jahs_carps.objective_function.JAHSObjectiveFunction",
            "benchmark": benchmark,
            "metrics": list(metrics),
            "fidelities": list(fidelities),
            "noise_seed": None,
        },
        "input_space": {
            "_target_": "carps.utils.task.InputSpace",
            "configuration_space": {
                "_target_": "ConfigSpace.configuration_space.ConfigurationSpace.from_serialized_dict",
                "_convert_": "object",
                "d": json.loads(json.dumps(space.to_serialized_dict(), default=lambda value: value.item())),  # no numpy
            },
            "fidelity_space": {
                "_target_": "carps.utils.task.FidelitySpace",
                "is_multifidelity": is_multifidelity,
                "fidelity_type": ("epoch" if fidelities == ("epoch",) else "budget") if is_multifidelity else None,
                "min_fidelity": 1 if is_multifidelity else None,
                "max_fidelity": view.max_epoch if is_multifidelity else None,
            },
            "instance_space": None,
        },
        "output_space": {
            "_target_": "carps.utils.task.OutputSpace",
            "n_objectives": len(objectives),
            "objectives": objectives,
        },
        "optimization_resources": {
            "_target_": "carps.utils.task.OptimizationResources",
            "n_trials": N_TRIALS,
            "time_budget": None,
            "n_workers": 1,
        },
        "metadata": {
            "_target_": "carps.utils.task.TaskMetadata",
            "has_constraints": False,
            "domain": "NAS+HPO",
            "objective_function_approximation": "surrogate",
            "has_virtual_time": True,
            "deterministic": True,
            **get_search_space_info(space),
        },
    }
    facts = {"benchmark_id": "JAHS", "task_id": "${task.name}", "task": task}
    return "# @package _global_\n" + yaml.safe_dump(facts, sort_keys=False)


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for task_name in TASKS:
        (FOLDER / f"{task_name}.yaml").write_text(make_task(task_name), encoding="utf-8")
