"""Class imbalance: the technique `imbalance`."""
