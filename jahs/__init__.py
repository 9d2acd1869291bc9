"""JAHS: joint architecture and hyperparameter search on a laptop.

>>> import jahs
>>> config = jahs.space().sample(seed=0)
>>> jahs.validate(config) == config
True
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from jahs import errors, tasks
from jahs.queries.answers import Result
from jahs.queries.benchmark import Benchmark
from jahs.release.find import releases
from jahs.spaces.columns import config_ids, validate_columns
from jahs.spaces.configs import Config, config_id, validate, validate_many
from jahs.spaces.encoding import decode, decode_columns, encode
from jahs.spaces.space import Space, space

if TYPE_CHECKING:
    from jahs import adapters, optimizers, simulate
    from jahs.comparison.compare import compare
    from jahs.comparison.suite import suite
    from jahs.comparison.terms import terms
    from jahs.models.cost import cost
    from jahs.models.noise.model import NoiseModel
    from jahs.queries.prediction import Prediction
    from jahs.queries.queryable import Queryable
    from jahs.queries.views.view import View
    from jahs.simulate import Proposal, Simulation, Trial
    from jahs.spaces.cell.value import Cell
    from jahs.tasks.objectives import read_objectives
    from jahs.tasks.pareto import hypervolume, is_non_dominated, pareto_front

__all__ = [
    "Benchmark",
    "Cell",
    "Config",
    "NoiseModel",
    "Prediction",
    "Proposal",
    "Queryable",
    "Result",
    "Simulation",
    "Space",
    "Trial",
    "View",
    "adapters",
    "compare",
    "config_id",
    "config_ids",
    "cost",
    "decode",
    "decode_columns",
    "encode",
    "errors",
    "hypervolume",
    "is_non_dominated",
    "optimizers",
    "pareto_front",
    "read_objectives",
    "releases",
    "simulate",
    "space",
    "suite",
    "tasks",
    "terms",
    "validate",
    "validate_columns",
    "validate_many",
]

__version__ = "0.1.0"

# A query needs none of these, so they are imported when they are first used.
_LAZY: Final = {
    "Cell": "jahs.spaces.cell.value",
    "compare": "jahs.comparison.compare",
    "cost": "jahs.models.cost",
    "hypervolume": "jahs.tasks.pareto",
    "is_non_dominated": "jahs.tasks.pareto",
    "pareto_front": "jahs.tasks.pareto",
    "read_objectives": "jahs.tasks.objectives",
    "suite": "jahs.comparison.suite",
    "terms": "jahs.comparison.terms",
    "NoiseModel": "jahs.models.noise.model",
    "Prediction": "jahs.queries.prediction",
    "Proposal": "jahs.simulate",
    "Queryable": "jahs.queries.queryable",
    "Simulation": "jahs.simulate",
    "Trial": "jahs.simulate",
    "View": "jahs.queries.views.view",
}


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    if name in __all__:
        return import_module(f"jahs.{name}")
    raise AttributeError(f"module 'jahs' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
