"""Properties of the competition's metric: the technique `metric`."""
