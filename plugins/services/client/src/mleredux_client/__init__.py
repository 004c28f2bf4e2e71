"""The Python SDK of a mleredux service."""
