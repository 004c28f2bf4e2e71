"""Instructions for agents whose submission is a program."""

from __future__ import annotations

import platform

from mleredux.models import Task
from mleredux.models.formats import plain

from mleredux_programs.declaration import Execution

_HOW = {
    "code": """\
It is called with two arguments: the name of a CSV with inputs (as `sample_inputs.csv`), and the name of
  the CSV of predictions to write (as `sample_predictions.csv`)""",
    "model": """\
It defines `load(folder)`, which loads the files next to it in the archive and returns an object with
  `predict(rows)`: from a list of dictionaries (the rows of inputs as in `sample_inputs.csv`, values are texts) to
  a list of predictions, each a value or a dictionary by column""",
    "service": """\
It is an HTTP server on 127.0.0.1, on the port that its first argument and `PORT` name. It answers
  `POST /predict` with a row of inputs as a JSON object (as in `sample_inputs.csv`, values are texts) by a JSON object
  of the prediction. It gets {clients} requests at a time, and must answer each within {deadline} seconds""",
    "policy": """\
It defines `act(observation)`, which returns an action, and perhaps `reset()`, which is called before each
  episode""",
}
_TEXT = """
# What is submitted

- `{file}` is a program, {form}. It is graded on inputs that you never see, by its results there.
- {how}.
- It is executed by Python {python} in its own sandbox: without network, without the data{public}, for at most
  {seconds} seconds, {memory_mb:,} MB of memory and {disk_mb:,} MB of files. It may be {size_mb} MiB large.
- `validate.sh` runs it on `sample_inputs.csv`, and says whether that works.
"""


def contract(task: Task, execution: Execution) -> str:
    """Return the part of the instructions that describes the program to submit."""
    archive = task.submission.file.endswith(".zip")
    return _TEXT.format(
        file=task.submission.file,
        form="a ZIP archive with `main.py` and what it needs" if archive else "one script",
        how=_HOW[execution.kind].format(clients=execution.clients, deadline=plain(execution.deadline)),
        python=platform.python_version(),
        public=f" but {', '.join(f'`{name}`' for name in execution.public)} next to it" if execution.public else "",
        seconds=plain(execution.seconds),
        memory_mb=execution.memory_mb,
        disk_mb=execution.disk_mb,
        size_mb=plain(execution.size_mb),
    )
