"""What agents reach that learn nothing.

`plugin` is the part that mleredux sees; `python -m mleredux_audit_floor.hunter` runs inside the sandbox, without it.
"""
