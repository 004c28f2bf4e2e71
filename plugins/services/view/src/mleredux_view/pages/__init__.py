"""The pages: each module declares its own with `@page` or `@action`, and is listed here."""

from __future__ import annotations

from mleredux_view.pages import failures, files, log, pairs, rollout, run, runs, versions

MODULES = (runs, failures, pairs, run, log, rollout, versions, files)
"""Modules with pages, in the order in which their addresses are matched."""
