"""A fitted model, its files, and the search for its settings."""
