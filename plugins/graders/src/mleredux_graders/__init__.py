"""Metrics with their checks: classification, regression, ranking."""
