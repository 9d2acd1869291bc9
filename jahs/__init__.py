"""JAHS: joint architecture and hyperparameter search on a laptop."""
