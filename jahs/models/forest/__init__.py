"""Forests that answer without XGBoost: a flat format, a reader of XGBoost's JSON, two engines with the same answers."""

from jahs.models.forest.engines import EngineKind, open_engine
from jahs.models.forest.flat import Forest, join_forests, take_forests
from jahs.models.forest.from_xgboost import forest_from_xgboost
from jahs.models.forest.storage import map_forest, parse_forest, save_forest, save_mapped_forest

__all__ = [
    "EngineKind",
    "Forest",
    "forest_from_xgboost",
    "join_forests",
    "map_forest",
    "open_engine",
    "parse_forest",
    "save_forest",
    "save_mapped_forest",
    "take_forests",
]
