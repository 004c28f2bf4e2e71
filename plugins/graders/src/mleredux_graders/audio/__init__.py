"""Audio: tags of clips."""
