"""Answer technique tasks with statistics. mleredux imports `plugin` and `agent`; the rest runs in the sandbox."""
