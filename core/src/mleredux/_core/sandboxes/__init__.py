"""The process sandbox, and what all sandboxes share: limits, slots, the environment of the agent."""
