"""Ranking: predictions in order."""
