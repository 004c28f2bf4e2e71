"""Calibration of probabilities, and decisions by them: the technique `calibration`."""
