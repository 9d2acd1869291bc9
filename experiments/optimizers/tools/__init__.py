"""Optimisers of other packages, with our interface; each module imports its tool on first use."""
