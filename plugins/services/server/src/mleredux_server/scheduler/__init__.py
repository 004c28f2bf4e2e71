"""The scheduler: assigns queued jobs to workers and follows them to their end."""
