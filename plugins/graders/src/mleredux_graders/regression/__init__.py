"""Regression: predicted numbers."""
