"""Text: predicted strings."""
