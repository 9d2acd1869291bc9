"""A release: the folder that answers queries for one task. Written by `surrogate.release` and `jahs import`, read here.

    RELEASE/manifest.json     facts of the release, and size and sha256 of every other file
    RELEASE/models.json       per metric: its forest, features, and the transform from the forest's answer to the metric
    RELEASE/forests-0.npz     forests that read the same features (or a folder of npy, mapped instead of read)
    RELEASE/refits.json       optional: models fitted again to resampled configs; their forests are refits-0.npz
    RELEASE/lightgbm.json     optional: models of another family, as models.json; their forests are lightgbm-0.npz
    RELEASE/noise.json        optional: the spread of the training noise
    RELEASE/table.npz         optional: the recorded runs
    RELEASE/references.json   optional: Pareto fronts and frozen reference points
    RELEASE/quality.json      optional: scores of the models

A file's size and sha256 are checked when it is first read, and exactly the hashed bytes are parsed.
Only JSON and plain numbers are read, never a pickle.
"""

from jahs.release.find import EMBEDDED, find_release, releases
from jahs.release.models import Costs, MetricModel, Models, Pack
from jahs.release.reading import Release, read_release
from jahs.release.table import RecordedTable
from jahs.release.writing import write_release

__all__ = [
    "EMBEDDED",
    "Costs",
    "MetricModel",
    "Models",
    "Pack",
    "RecordedTable",
    "Release",
    "find_release",
    "read_release",
    "releases",
    "write_release",
]
