"""Run ML-engineering agents on benchmark tasks in a sandbox, grade their submissions, and store all artifacts.

The names exported here are the stable API; each is imported on first use.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from mleredux.models.imports import on_first_use

if os.path.expanduser("~") == "~":  # noqa: PTH111 - the user has no entry in the password database, as in containers
    os.environ["HOME"] = "/"

if TYPE_CHECKING:
    __version__: str
    from mleredux._core.api import experiment as experiment
    from mleredux._core.api import grade as grade
    from mleredux._core.api import prepare as prepare
    from mleredux._core.api import run as run
    from mleredux._core.api import tasks as tasks
    from mleredux._core.api import validate as validate
    from mleredux._core.plugins import Ref as Ref
    from mleredux._core.store import Run as Run
    from mleredux.errors import InvalidSubmission as InvalidSubmission
    from mleredux.errors import MlereduxError as MlereduxError
    from mleredux.hookspecs import CONTRACT_VERSION as CONTRACT_VERSION
    from mleredux.hookspecs import hookimpl as hookimpl
    from mleredux.models import Agent as Agent
    from mleredux.models import Artifact as Artifact
    from mleredux.models import Build as Build
    from mleredux.models import Competition as Competition
    from mleredux.models import Grader as Grader
    from mleredux.models import GradingInput as GradingInput
    from mleredux.models import Limits as Limits
    from mleredux.models import Metric as Metric
    from mleredux.models import Report as Report
    from mleredux.models import Resources as Resources
    from mleredux.models import Score as Score
    from mleredux.models import Submission as Submission
    from mleredux.models import Task as Task
    from mleredux.models import Thresholds as Thresholds

_HOMES = {
    "mleredux._core.api": "experiment grade prepare run tasks validate",
    "mleredux._core.plugins": "Ref",
    "mleredux._core.store": "Run",
    "mleredux.errors": "InvalidSubmission MlereduxError",
    "mleredux.hookspecs": "CONTRACT_VERSION hookimpl",
    "mleredux.models": "Agent Artifact Build Competition Grader GradingInput Limits Metric Report Resources Score "
    "Submission Task Thresholds",
}
_find, _names = on_first_use(__name__, _HOMES)
__all__ = [*_names, "__version__"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return globals().setdefault(name, version("mleredux"))
    return _find(name)


def __dir__() -> list[str]:
    return __all__
