"""Detection: boxes and points with labels."""
