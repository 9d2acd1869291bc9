"""Train configs and record the measurements: images in, runs out."""
