"""The verbs of the service."""
