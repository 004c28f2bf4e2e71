"""Artifacts of a run: the standard rollout and an HTML report."""
