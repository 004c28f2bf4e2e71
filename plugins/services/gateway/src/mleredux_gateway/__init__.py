"""The metered way of agents to language models."""

from __future__ import annotations

mleredux_contract = 1
