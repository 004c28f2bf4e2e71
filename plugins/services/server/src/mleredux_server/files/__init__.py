"""Files of runs over HTTP: what agents left is hostile, names as well as contents."""
