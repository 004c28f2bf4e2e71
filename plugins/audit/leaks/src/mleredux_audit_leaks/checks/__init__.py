"""The checks, one module per type of leak."""
