"""One module per technique, each with `analyse(tables)`; found by name, with `_` for `-`."""
