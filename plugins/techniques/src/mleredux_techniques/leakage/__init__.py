"""Leakage: the technique `leakage`."""
