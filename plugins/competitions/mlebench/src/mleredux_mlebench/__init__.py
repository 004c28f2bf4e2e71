"""MLE-bench."""
