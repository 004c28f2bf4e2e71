"""Run aideml inside the sandbox; imports nothing from mleredux."""
