"""People as agents.

`session` and what it imports runs inside the sandbox, without mleredux; `plugin` and `commands` on this machine.
"""
