"""How good the models are: scores, noise between trainings, and the content of quality.json."""
