"""Found by hydra as `pkg://jahs_carps/configs`."""
