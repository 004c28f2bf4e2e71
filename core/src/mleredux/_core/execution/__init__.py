"""Execution of submissions that are programs, in a sandbox of their own, while they are checked and graded."""
