"""A page that describes a folder of runs: protocol, counts, cost, plots and the noise between trainings."""
