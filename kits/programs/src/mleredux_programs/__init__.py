"""For authors of tasks whose submission is a program: its declaration, and its execution during grading.

| module | contents |
|---|---|
| `declaration` | how a task declares programs; the instructions for agents |
| `execute` | confined execution of a program on inputs |
| `runner`, `load` | the program that is started in the sandbox; requests to a service, from outside its processes |
| `returns` | the score of a policy |
| `confined`, `confined_child`, `control_group` | execution of untrusted code in namespaces, with limits |

A task declares how programs are executed; `run_confined` executes untrusted code, for graders::

    from mleredux.plugin.task import Submission
    from mleredux_programs import Execution

    submission = Submission(file="submission.py", execution=Execution(kind="code", seconds=30))
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mleredux_programs.confined import Confined, run_confined
    from mleredux_programs.declaration import Environment, Execution
    from mleredux_programs.returns import MEAN_RETURN

__all__ = ["MEAN_RETURN", "Confined", "Environment", "Execution", "run_confined"]
_HOME = {"Confined": "confined", "run_confined": "confined", "Environment": "declaration", "Execution": "declaration"}


def __getattr__(name: str) -> Any:
    """Import a name on first use, because declarations of tasks do not need execution."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME.get(name, 'returns')}"), name)
