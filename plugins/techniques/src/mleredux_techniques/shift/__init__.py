"""The technique `shift`."""
