"""Run unchanged agents in MLE-bench's layout."""
