"""Training noise: the spread between trainings, counter-based random numbers, and the model that draws with a seed."""

from jahs.models.noise.model import NOISE_FORMAT, Kind, NoiseModel

__all__ = ["NOISE_FORMAT", "Kind", "NoiseModel"]
