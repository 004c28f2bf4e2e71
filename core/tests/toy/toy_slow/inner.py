"""What the build looks for."""
