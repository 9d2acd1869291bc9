"""Fit, tune, score and release the models that answer queries."""
