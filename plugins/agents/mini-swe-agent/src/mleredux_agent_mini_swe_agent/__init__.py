"""mini-swe-agent as an agent: its image, its driver in the sandbox, and the reader of its trajectories."""
