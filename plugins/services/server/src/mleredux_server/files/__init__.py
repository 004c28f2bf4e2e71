"""Serve files of runs over HTTP: agents' output files are hostile, in names as well as contents."""
