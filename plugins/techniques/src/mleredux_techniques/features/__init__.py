"""The technique `features`."""
