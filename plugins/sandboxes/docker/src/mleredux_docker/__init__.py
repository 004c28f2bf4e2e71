"""A sandbox of containers that never see the answers."""
