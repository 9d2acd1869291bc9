"""Optimisers of other packages, asked and told as our own are; each module imports its tool when one is made."""
