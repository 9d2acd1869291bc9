"""Train configs and write what was measured: images in, runs out."""
