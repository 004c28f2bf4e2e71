"""What agents wrote and ran, and what its names and constants mean."""
