"""For authors of tasks whose submission is a program: its declaration, and its execution during grading.

| module | contents |
|---|---|
| `declaration` | how a task declares programs; the instructions for agents |
| `execute` | confined execution of a program on inputs |
| `runner`, `load` | the program that is started in the sandbox; requests to a service, from outside its processes |
| `returns` | the score of a policy |
| `confined`, `confined_child`, `control_group` | execution of untrusted code in namespaces, with limits |
| `known_files` | files that hold a task's answers, which are hidden |

A task declares how programs are executed; `run_confined` executes untrusted code, for graders::

    from mleredux.plugin.task import Submission
    from mleredux_programs import Execution

    submission = Submission(file="submission.py", execution=Execution(kind="code", seconds=30))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mleredux.models.imports import on_first_use

if TYPE_CHECKING:
    from mleredux_programs.confined import Confined as Confined
    from mleredux_programs.confined import run_confined as run_confined
    from mleredux_programs.declaration import Environment as Environment
    from mleredux_programs.declaration import Execution as Execution
    from mleredux_programs.returns import MEAN_RETURN as MEAN_RETURN

_HOMES = {".confined": "Confined run_confined", ".declaration": "Environment Execution", ".returns": "MEAN_RETURN"}
"""Names by module; each is imported on first use, because declarations of tasks do not need execution."""
__getattr__, __all__ = on_first_use(__name__, _HOMES)
