"""For programs that run inside a sandbox: the task, the clock, the trajectory, language models.

Needs only the standard library, and imports nothing of mleredux. Images of agents that list `mleredux_agentkit` in
`Build.packages`, or that were created with `llm_agent`, contain it. All names exported here are stable.

- `task`, `clock`: the task as given by the sandbox; the deadline
- `llm`, `shell`: calls to language models; execution of their commands
- `files`, `trajectory`: atomic writes; the agent's steps
- `workspace`, `wire`, `session`: sessions for external clients: files, requests, the server in the sandbox
- `hosted`: the server of a session in the process sandbox, which forks a process for each command
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
