"""The card: the quality of a release as a page."""
