"""Features of a config and an epoch: features of cells, the sets that models choose, and their builders."""

from jahs.models.features.builder import Column, FeatureBuilder, RowBuilder, joint_columns, schedule
from jahs.models.features.sets import (
    FEATURE_SETS,
    FEATURES_VERSION,
    GROUPS,
    FeatureSet,
    feature_set,
    joint_times,
)
from jahs.models.features.timing import DEFAULT_TIMES, TimeCoefficients

__all__ = [
    "DEFAULT_TIMES",
    "FEATURES_VERSION",
    "FEATURE_SETS",
    "GROUPS",
    "Column",
    "FeatureBuilder",
    "FeatureSet",
    "RowBuilder",
    "TimeCoefficients",
    "feature_set",
    "joint_columns",
    "joint_times",
    "schedule",
]
