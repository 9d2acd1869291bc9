"""Training noise: the spread between trainings, counter-based random numbers, and the model that draws with a seed."""

from jahs.models.noise.model import Kind, NoiseModel

__all__ = ["Kind", "NoiseModel"]
