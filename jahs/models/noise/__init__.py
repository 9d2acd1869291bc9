"""Training noise: how far trainings spread, numbers by their place, and the model that a query with a seed asks."""

from jahs.models.noise.model import NOISE_FORMAT, Kind, NoiseModel

__all__ = ["NOISE_FORMAT", "Kind", "NoiseModel"]
