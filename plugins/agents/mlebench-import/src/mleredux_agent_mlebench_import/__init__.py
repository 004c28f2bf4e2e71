"""Agents in MLE-bench's own layout, taken as they are."""
