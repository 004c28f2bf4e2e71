"""One package per competition: its declaration and its two descriptions."""
