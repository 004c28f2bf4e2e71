"""A sandbox of plain processes: what a third party writes, whole."""
