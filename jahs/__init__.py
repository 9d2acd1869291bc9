"""JAHS: joint architecture and hyperparameter search on a laptop."""

from jahs import configs, errors, metrics, schema, spaces, tasks
from jahs.configs import Config, config_id, validate, validate_many
from jahs.spaces import Space, space

__all__ = [
    "Config",
    "Space",
    "config_id",
    "configs",
    "errors",
    "metrics",
    "schema",
    "space",
    "spaces",
    "tasks",
    "validate",
    "validate_many",
]

__version__ = "0.1.0"
