"""Optimisers spend simulated hours on the benchmark."""
