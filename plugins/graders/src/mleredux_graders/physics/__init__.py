"""Physics, medicine and places: directions, positions, and values with a confidence."""
