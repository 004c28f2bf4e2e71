"""Inference over runs: errors, the paired comparison, power, sequential tests, ranking."""
