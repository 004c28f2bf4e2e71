"""Run any program as an agent; its packages and command are options."""
