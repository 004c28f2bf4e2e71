"""How tasks declare that submissions are programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Literal, Protocol

from mleredux.models import Execution as Declared
from mleredux.models import Grader, Score, Task
from pydantic import Field, field_serializer

ExecutionKind = Literal["code", "service", "model", "policy"]


class Environment(Protocol):
    """What a policy acts in, as an environment of Gymnasium: observations and actions are values of JSON."""

    def reset(self, *, seed: int) -> tuple[Any, dict[str, Any]]:
        """Start an episode; its first observation."""
        ...

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Act; the next observation, the reward, whether the episode is over or cut short.

        Raises:
            ValueError: It is no action; the message is not shown to the policy.
        """
        ...


class Execution(Declared):
    """How a submission that is a program is executed while it is graded, confined and without network.

    The submission is one script (`submission.py`), or a ZIP archive (`submission.zip`) with `main.py`. The public
    folder has `sample_inputs.csv` and `sample_predictions.csv`, by which programs are checked; the private one has
    `inputs.csv`, on which they are graded, and answers that no program gets.
    """

    kind: ExecutionKind
    """`code`: a script, called with the names of the inputs and of the predictions it is to write. `model`: `main.py`
    defines `load(folder)`, and what it returns `predict(rows)`. `service`: an HTTP server that answers `POST /predict`.
    `policy`: `act(observation)`, and perhaps `reset()`."""
    public: tuple[str, ...] = ()
    """Public files that the program gets, too."""
    memory_mb: int = Field(default=1_024, ge=64)
    """For all processes of the program together."""
    disk_mb: int = Field(default=256, ge=16)
    """For all files, in memory; the submission is among them."""
    size_mb: float = Field(default=16.0, gt=0)
    """Maximum size of the submission."""
    missing: str = ""
    """The prediction in place of an answer that a service did not give in time."""
    clients: int = Field(default=8, ge=1, le=64)
    """How many requests a service gets at a time."""
    requests: int = Field(default=400, ge=1, le=100_000)
    """How many requests a service gets in all: the inputs are repeated. The worst answer to an input counts."""
    deadline: float = Field(default=1.0, gt=0)
    """Seconds in which a service must answer."""
    environment: Callable[[Path], Environment] | None = None
    """`environment(folder)` returns what a policy acts in, made from the public or the private files. The inputs have
    a column `seed`: one episode each."""

    @field_serializer("environment", when_used="json")
    def _name(self, made: Callable[[Path], Environment] | None) -> str | None:
        return None if made is None else getattr(made, "__qualname__", "environment")

    def instructions(self, task: Task) -> str:
        """Return the part of an agent's instructions on the program to submit."""
        from mleredux_programs.contract import contract

        return contract(task, self)

    def check(self, task: Task, program: BinaryIO, public: Path, seconds: float) -> None:
        """Check a program by its predictions for the sample inputs."""
        from mleredux_programs.execute import check_program

        check_program(task, program, public, seconds)

    def score(self, task: Task, grader: Grader, program: Path, private: Path) -> Score:
        """Execute a program on the private inputs, and score its predictions."""
        from mleredux_programs.execute import score_program

        return score_program(task, grader, program, private)
