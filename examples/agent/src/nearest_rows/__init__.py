"""An agent for mleredux. Only `plugin` and `agent` import mleredux; the rest runs inside the sandbox."""
