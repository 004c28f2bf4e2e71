"""What a metric rewards: the technique `metric`."""
