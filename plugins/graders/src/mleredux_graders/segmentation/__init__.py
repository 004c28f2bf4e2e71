"""Segmentation: masks as run-length text."""
