"""AIDE (aideml) as an agent: its image, its driver in the sandbox, and the reader of its journal."""
