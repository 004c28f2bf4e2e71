"""Scores of trivial agents that learn nothing.

mleredux imports `plugin`; `python -m mleredux_audit_floor.hunter` runs inside the sandbox, without it.
"""
