"""Instructions for agents whose submission is a program."""

from __future__ import annotations

import platform

from mleredux.models import Task
from mleredux.models.formats import plain

from mleredux_programs.declaration import Execution

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
  `POST /predict`, whose body is a JSON object with the columns of `sample_inputs.csv` (all values are strings), with
  the prediction as a JSON object. It gets up to {clients} concurrent requests; answer each in {deadline} seconds""",
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
