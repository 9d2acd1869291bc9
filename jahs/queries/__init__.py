"""Queries: the benchmark, its views, the oracles that answer them, and fronts of the answers."""
