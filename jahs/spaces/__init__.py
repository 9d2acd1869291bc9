"""The space: its keys, configs one by one and as columns, cells, encodings, seeds."""
