"""Runs aideml inside the sandbox; imports nothing of mleredux."""
