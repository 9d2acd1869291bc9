"""Models: features, forests, bounds, exact costs, the noise model."""
