"""A sandbox of plain processes: a complete example of a third-party plugin."""
