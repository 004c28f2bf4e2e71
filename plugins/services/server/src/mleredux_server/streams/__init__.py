"""Live streams: one tail of a file for all its followers, and responses that use no memory for slow clients."""
