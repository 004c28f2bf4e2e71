"""The verbs of the command line against a service."""
