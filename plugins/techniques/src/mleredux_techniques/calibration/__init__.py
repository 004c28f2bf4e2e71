"""Calibration of probabilities, and decisions based on them: the technique `calibration`."""
