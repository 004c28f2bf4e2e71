"""Scalings: the technique `scaling`."""
