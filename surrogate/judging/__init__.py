"""Quality of the models: scores, noise between trainings, and the content of quality.json."""
