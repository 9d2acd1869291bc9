"""JAHS: joint architecture and hyperparameter search."""

from ._jahs import Problem


__all__ = ["Problem"]
