"""JAHS: joint architecture and hyperparameter search on a laptop.

>>> import jahs
>>> config = jahs.space().sample(seed=0)
>>> jahs.validate(config) == config
True
"""

from jahs import bounds, cell, columns, configs, encoding, errors, metrics, parameters, schema, spaces, tasks
from jahs.benchmark import Benchmark
from jahs.columns import config_ids, validate_columns
from jahs.configs import Config, config_id, validate, validate_many
from jahs.encoding import decode, decode_columns, encode, encode_one
from jahs.release import releases
from jahs.spaces import Space, space

__all__ = [
    "Benchmark",
    "Config",
    "Space",
    "bounds",
    "cell",
    "columns",
    "config_id",
    "config_ids",
    "configs",
    "decode",
    "decode_columns",
    "encode",
    "encode_one",
    "encoding",
    "errors",
    "metrics",
    "parameters",
    "releases",
    "schema",
    "space",
    "spaces",
    "tasks",
    "validate",
    "validate_columns",
    "validate_many",
]

__version__ = "0.1.0"
