"""What answers are computed with: features, forests, bounds, exact costs, the noise model."""
