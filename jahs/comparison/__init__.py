"""Optimisers compared under the same terms: their runs, checked logs, leaderboards and a page."""
