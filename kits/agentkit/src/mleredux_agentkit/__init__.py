"""For programs that run inside a sandbox: the task, the clock, the trajectory, language models.

Needs the standard library alone, and imports nothing of mleredux. An agent that names `mleredux_agentkit` in
`Build.packages` finds it in its image; agents made by `llm_agent` always do. Everything named here is stable.

- `task`, `clock`: what the sandbox says; the end of the time
- `llm`, `shell`: calls of language models; their commands
- `files`, `trajectory`: files that are whole at any time; the agent's steps
- `workspace`, `wire`, `session`: a session used from outside: files, requests, the server inside
"""

from mleredux_agentkit.clock import Clock, Ended, Stopped, exit_now, work_until
from mleredux_agentkit.files import copy, write
from mleredux_agentkit.llm import Answer, NoMoreCalls, PromptTooLong, complete, is_final, speaks_anthropic
from mleredux_agentkit.shell import Finished, run
from mleredux_agentkit.task import Task
from mleredux_agentkit.trajectory import Trajectory

__all__ = [
    "Answer",
    "Clock",
    "Ended",
    "Finished",
    "NoMoreCalls",
    "PromptTooLong",
    "Stopped",
    "Task",
    "Trajectory",
    "complete",
    "copy",
    "exit_now",
    "is_final",
    "run",
    "speaks_anthropic",
    "work_until",
    "write",
]
