"""Images that tasks provide for agents to work in."""

from __future__ import annotations

from dataclasses import replace

from mleredux._core.protocols import BuildRequest, Built, Sandbox
from mleredux.errors import MlereduxError
from mleredux.models import Agent, Task


def placed(agent: Agent, task: Task) -> Agent:
    """Return the agent configured for a task: unchanged, unless the task provides an image.

    Raises:
        MlereduxError: Both the agent and the task specify an image.
    """
    if task.environment is None:
        return agent
    if agent.build.image is not None:
        raise MlereduxError(
            f"Agent {agent.id} is an image, but task {task.id} requires its own image.",
            hint="Choose an agent that can be installed into any image.",
        )
    requested = task.resources.model_dump(include={"cpus", "memory_mb", "gpus", "time_limit"}, exclude_none=True)
    return agent.model_copy(
        update={
            "isolated": True,
            "unisolated": "never",
            "build": agent.build.model_copy(update={"writable_root": True}),
            "limits": agent.limits.model_copy(update=requested),
            "smoke": None,  # its task has another image
        }
    )


def build_in(task: Task, sandbox: Sandbox, request: BuildRequest) -> Built:
    """Build an agent's environment, on the task's image if it provides one.

    Raises:
        BuildFailed: A step of either build failed.
        SandboxError: The sandbox itself failed.
    """
    if task.environment is not None:
        owner = Agent(id="task", title=task.title, command=("true",), build=task.environment, isolated=True)
        limit = task.environment.time_limit
        image = sandbox.build(replace(request, agent=owner, time_limit=limit, hosts=task.environment.hosts))
        request = replace(request, base_image=image.reference)
    return sandbox.build(request)
