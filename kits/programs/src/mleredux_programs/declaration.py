"""Declaration of tasks whose submissions are programs, and the instructions for agents."""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Literal, Protocol

from mleredux.models import Execution as Declared
from mleredux.models import Grader, Score, Task
from mleredux.models.formats import plain
from pydantic import Field, field_serializer

ExecutionKind = Literal["code", "service", "model", "policy"]


class Environment(Protocol):
    """The environment of a policy, as in Gymnasium, with JSON values as observations and actions."""

    def reset(self, *, seed: int) -> tuple[Any, dict[str, Any]]:
        """Start an episode, and return the first observation and further information."""
        ...

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Perform an action, and return the next observation, the reward, whether the episode has terminated, whether
        it was truncated, and further information.

        Raises:
            ValueError: The action is not valid; the message is not shown to the policy.
        """
        ...


class Execution(Declared):
    """How a submitted program is executed during grading, confined and without network.

    The submission is one script (`submission.py`), or a ZIP archive (`submission.zip`) with `main.py`. The public
    folder has `sample_inputs.csv` and `sample_predictions.csv` for checking programs; the private folder has
    `inputs.csv` for grading them, and answers that no program can read.
    """

    kind: ExecutionKind
    """`code`: a script, called with the names of the input file and of the predictions file to write. `model`:
    `main.py` defines `load(folder)`, which returns an object with `predict(rows)`. `service`: an HTTP server that
    answers `POST /predict`. `policy`: `act(observation)`, and optionally `reset()`."""
    public: tuple[str, ...] = ()
    """Public files that the program also gets."""
    memory_mb: int = Field(default=1_024, ge=64)
    """Memory limit in MiB for all processes of the program together."""
    disk_mb: int = Field(default=256, ge=16)
    """Limit in MiB for all files, which are kept in memory; they include the submission."""
    size_mb: float = Field(default=16.0, gt=0)
    """Maximum size of the submission, in MiB."""
    missing: str = ""
    """The prediction to use if a service did not answer in time."""
    clients: int = Field(default=8, ge=1, le=64)
    """Maximum number of concurrent requests to a service."""
    requests: int = Field(default=400, ge=1, le=100_000)
    """Total number of requests to a service, for which the inputs are repeated. The worst answer to an input counts."""
    deadline: float = Field(default=1.0, gt=0)
    """Seconds within which a service must answer."""
    environment: Callable[[Path], Environment] | None = None
    """`environment(folder)` returns the environment of a policy, created from the public or the private files. The
    inputs have a column `seed`, with one episode per row."""

    @field_serializer("environment", when_used="json")
    def _name(self, factory: Callable[[Path], Environment] | None) -> str | None:
        return None if factory is None else getattr(factory, "__qualname__", "environment")

    def instructions(self, task: Task) -> str:
        """Return the part of an agent's instructions that describes the program to submit."""
        return contract(task, self)

    def check(self, task: Task, program: BinaryIO, public: Path, seconds: float) -> None:
        """Check a program by its predictions for the sample inputs."""
        from mleredux_programs.execute import check_program

        check_program(task, program, public, seconds)

    def score(self, task: Task, grader: Grader, program: Path, private: Path) -> Score:
        """Execute a program on the private inputs, and score its predictions."""
        from mleredux_programs.execute import score_program

        return score_program(task, grader, program, private)


_HOW = {
    "code": """\
It is called with two arguments: the path of a CSV file of inputs (in the format of `sample_inputs.csv`), and the
  path of the CSV file to write predictions to (in the format of `sample_predictions.csv`)""",
    "model": """\
It defines `load(folder)`, which loads the files next to it in the archive and returns an object with
  `predict(rows)`. `rows` is a list of dictionaries with the columns of `sample_inputs.csv`; all values are strings.
  It returns a list of predictions, each a value, or a dictionary with a value per column""",
    "service": """\
It is an HTTP server on 127.0.0.1; its first argument and the variable `PORT` contain the port. It answers
  `POST /predict` with the prediction as a JSON object; the request's body is a JSON object with the columns of
  `sample_inputs.csv` (all values are strings). It gets up to {clients} concurrent requests; answer each within
  {deadline} seconds""",
    "policy": """\
It defines `act(observation)`, which returns an action, and optionally `reset()`, which is called before each
  episode""",
}
_TEXT = """
# The submission

- `{file}` is a program, {form}. It is graded by its results on inputs that you never see.
- {how}.
- It is executed by Python {python} in a separate sandbox without network access or the data{public}. Its limits are
  {seconds} seconds, {memory_mb:,} MB of memory and {disk_mb:,} MB of files. Its size is limited to {size_mb} MiB.
- `validate.sh` runs it on `sample_inputs.csv` and reports whether that works.
"""


def contract(task: Task, execution: Execution) -> str:
    """Return the part of the instructions that describes the program to submit."""
    archive = task.submission.file.endswith(".zip")
    return _TEXT.format(
        file=task.submission.file,
        form="a ZIP archive with `main.py` and all files that it needs" if archive else "one script",
        how=_HOW[execution.kind].format(clients=execution.clients, deadline=plain(execution.deadline)),
        python=platform.python_version(),
        public=f", except for {', '.join(f'`{name}`' for name in execution.public)}" if execution.public else "",
        seconds=plain(execution.seconds),
        memory_mb=execution.memory_mb,
        disk_mb=execution.disk_mb,
        size_mb=plain(execution.size_mb),
    )
