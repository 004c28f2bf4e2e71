"""Technique tasks: small diagnostic questions on the data of any competition with a table."""

from __future__ import annotations

mleredux_contract = 1
