"""The small release with noise and references that the tests of experiments use."""

from tests.experiments.conftest import bench, release

__all__ = ["bench", "release"]
