"""Submissions: their schema, whether one is well-formed, and accepting an agent's output."""
