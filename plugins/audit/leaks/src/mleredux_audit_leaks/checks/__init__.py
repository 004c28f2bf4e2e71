"""The checks, one kind of leak each."""
