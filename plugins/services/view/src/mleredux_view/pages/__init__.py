"""The pages: each module declares its own with `@page` or `@action`, and is listed here."""

from __future__ import annotations

from mleredux_view.pages import failures, files, launch, log, pairs, rollout, run, runs, tasks, versions

MODULES = (runs, launch, failures, tasks, pairs, run, log, rollout, versions, files)
"""Modules with pages, in the order in which their addresses are matched."""
