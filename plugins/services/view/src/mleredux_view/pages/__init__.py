"""The pages: each module declares its own with `@page` or `@action`, and is listed here.

| modules | contents |
|---|---|
| `tasks`, `launch` | tasks and their leaderboards; a form that requests runs |
| `runs`, `pairs`, `failures` | all runs; two runs side by side; failures by cause |
| `run`, `log`, `rollout` | one run; its log; the steps of its rollout |
| `versions`, `files` | versions of the submission; files with previews |
"""

from __future__ import annotations

from mleredux_view.pages import failures, files, launch, log, pairs, rollout, run, runs, tasks, versions

MODULES = (runs, launch, failures, tasks, pairs, run, log, rollout, versions, files)
"""Modules with pages, in the order in which their URLs are matched."""
