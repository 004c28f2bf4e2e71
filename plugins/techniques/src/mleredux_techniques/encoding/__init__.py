"""Encodings: the technique `encoding`."""
