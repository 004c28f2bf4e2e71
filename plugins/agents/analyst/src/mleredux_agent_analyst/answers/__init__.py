"""One module a technique, each with `analyse(tables)`: found by name, with `_` for `-`."""
