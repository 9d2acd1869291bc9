"""JAHS as tasks of CARP-S: an objective function, and a YAML for each view of each embedded benchmark."""
