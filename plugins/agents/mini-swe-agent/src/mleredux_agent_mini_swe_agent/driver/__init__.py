"""Runs mini-swe-agent inside the sandbox; imports nothing of mleredux."""
