"""The HTTP service of mleredux."""
