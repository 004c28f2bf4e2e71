"""The four stages of a run, and what is built in of each."""
