"""The verbs of mleredux's command line against a service: `mleredux VERB … --server URL`."""
