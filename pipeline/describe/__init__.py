"""A page that says what a folder of runs holds: protocol, counts, cost, plots and the noise between trainings."""
