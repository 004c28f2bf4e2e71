"""Exploratory analysis: the technique `eda`."""
