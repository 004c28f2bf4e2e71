"""Answers technique tasks with statistics. mleredux sees `plugin` and `agent`; the rest runs in the sandbox."""
