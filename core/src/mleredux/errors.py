"""One family of errors: each says what happened, where, and what to do next."""

from __future__ import annotations


class MlereduxError(Exception):
    """Base of every error that mleredux raises on purpose.

    Args:
        message: One sentence on what is wrong and where.
        hint: One sentence on what to do next.

    Attributes:
        exit_code: What the command line exits with.
    """

    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}" if self.hint else self.message


class NotFound(MlereduxError):
    """A task, agent, grader, sandbox or run of that name is not known."""


class PluginError(MlereduxError):
    """A plugin can't be loaded, or declares something wrong. Names the plugin and the remedy."""


class DataError(MlereduxError):
    """Raw or prepared data are missing, damaged, or of another version than the task's."""


class NotApplicable(MlereduxError):
    """A technique makes no sense of a task; the message says why."""


class TaskBroken(MlereduxError):
    """The task itself is at fault: its declaration, its answers, or its grader."""


class InvalidSubmission(MlereduxError):
    """A submission can't be scored. The message is for the agent: one sentence on what to mend."""


class SandboxError(MlereduxError):
    """The environment broke: no engine, a build that failed, a container that did not start."""


class AgentBroken(MlereduxError):
    """The agent itself is at fault: it does not do what every agent must."""


class BuildFailed(SandboxError):
    """An agent's environment could not be built; the build log is in the run."""


class ResumeRefused(MlereduxError):
    """A run can't go on: it is alive, finished, or was started with other versions."""


class Cancelled(MlereduxError):
    """The user stopped the run."""

    exit_code = 130
