"""Queries: the benchmark, its views, what answers them, and fronts of the answers."""
