"""Run mini-swe-agent inside the sandbox; imports nothing from mleredux."""
