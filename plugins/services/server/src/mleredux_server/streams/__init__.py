"""Live streams: one tail per file for all its followers, and responses that use no memory for slow clients."""
