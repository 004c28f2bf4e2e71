# Generated from mleredux_client/_async by generate_sync.py. Change that, not this.
"""The synchronous client."""
