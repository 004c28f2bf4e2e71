"""Live streams: one tail of a file for all who follow it, and answers that cost no memory when clients are slow."""
