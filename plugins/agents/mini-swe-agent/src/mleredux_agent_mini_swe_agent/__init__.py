"""mini-swe-agent as an agent: its image, its driver inside, and the reader of its trajectories."""
