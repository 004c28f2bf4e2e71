"""Missing values: the technique `missing`."""
