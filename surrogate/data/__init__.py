"""From a folder of runs to the rows that models are fitted and scored on."""
