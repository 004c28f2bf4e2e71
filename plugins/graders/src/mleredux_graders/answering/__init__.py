"""Question answering: answers as token spans."""
