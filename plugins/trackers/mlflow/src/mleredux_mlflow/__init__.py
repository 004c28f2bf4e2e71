"""Follows runs in MLflow."""
