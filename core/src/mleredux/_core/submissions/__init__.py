"""Submissions: their schema, whether one is well-formed, and taking in what an agent left."""
