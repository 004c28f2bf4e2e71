"""Physics, medicine and geography: directions, positions, and values with a confidence."""
