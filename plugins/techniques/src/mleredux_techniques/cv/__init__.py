"""Cross-validation: the technique `cv`."""
