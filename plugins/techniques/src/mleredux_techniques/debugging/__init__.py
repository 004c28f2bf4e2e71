"""Debugging: finding and repairing the faults of a training script."""
