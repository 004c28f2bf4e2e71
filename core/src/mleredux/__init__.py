"""Run ML-engineering agents on benchmark tasks in a sandbox, grade their submissions, and store all artifacts.

The names exported here are the stable API; each is imported on first use.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

if os.path.expanduser("~") == "~":  # noqa: PTH111 - the user has no entry in the password database, as in containers
    os.environ["HOME"] = "/"

if TYPE_CHECKING:
    __version__: str
    from mleredux._core.api import experiment, grade, prepare, run, tasks, validate
    from mleredux._core.plugins import Ref
    from mleredux._core.store import Run
    from mleredux.errors import InvalidSubmission, MlereduxError
    from mleredux.hookspecs import CONTRACT_VERSION, hookimpl
    from mleredux.models import (
        Agent,
        Artifact,
        Build,
        Competition,
        Grader,
        GradingInput,
        Limits,
        Metric,
        Report,
        Resources,
        Score,
        Submission,
        Task,
        Thresholds,
    )

_HOME = {
    "mleredux._core.api": ("experiment", "grade", "prepare", "run", "tasks", "validate"),
    "mleredux.errors": ("InvalidSubmission", "MlereduxError"),
    "mleredux.hookspecs": ("CONTRACT_VERSION", "hookimpl"),
    "mleredux._core.plugins": ("Ref",),
    "mleredux._core.store": ("Run",),
}
_WHERE = {name: module for module, names in _HOME.items() for name in names}
"""Module of each exported name that is not a model."""

__all__ = [
    "CONTRACT_VERSION",
    "Agent",
    "Artifact",
    "Build",
    "Competition",
    "Grader",
    "GradingInput",
    "InvalidSubmission",
    "Limits",
    "Metric",
    "MlereduxError",
    "Ref",
    "Report",
    "Resources",
    "Run",
    "Score",
    "Submission",
    "Task",
    "Thresholds",
    "__version__",
    "experiment",
    "grade",
    "hookimpl",
    "prepare",
    "run",
    "tasks",
    "validate",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return globals().setdefault(name, version("mleredux"))
    if name not in __all__:
        raise AttributeError(f"module 'mleredux' has no attribute {name!r}")
    return getattr(importlib.import_module(_WHERE.get(name, "mleredux.models")), name)


def __dir__() -> list[str]:
    return sorted(__all__)
