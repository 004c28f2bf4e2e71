"""Execute a submitted program on inputs, confined, and return its predictions, or one sentence with the reason for
their absence. For the private inputs, that sentence is always a fixed one: nothing that the program prints or writes is
shown to anyone, because the program has seen these inputs. For the sample inputs, which are public, it includes the
last line of the log.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import math
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from mleredux._core.submissions.files import open_regular
from mleredux.errors import InvalidSubmission, TaskBroken, file_errors
from mleredux.models.formats import plain
from mleredux.models.grader import Grader, GradingInput, Score
from mleredux.models.task import Submission, Task, known_answers

from mleredux_programs.confined import Confined, run_confined
from mleredux_programs.declaration import Environment, Execution

INPUTS, SAMPLE_INPUTS, SAMPLE_PREDICTIONS = "inputs.csv", "sample_inputs.csv", "sample_predictions.csv"
PREDICTIONS = "predictions.csv"
_PORT = 8_000
_MOST_LINE = 1 << 16
_SHOWN = 200


@dataclass(frozen=True)
class Executed:
    """The result of executing a program on inputs.

    Attributes:
        predictions: The CSV with its predictions.
        details: Measurements of the execution, such as the latencies of a `service`.
    """

    predictions: bytes
    details: dict[str, Any] = field(default_factory=dict)


class _Inputs(NamedTuple):
    """Inputs: the file, its columns and rows, and whether agents know them."""

    path: Path
    header: list[str]
    rows: list[list[str]]
    public: bool


def execution_of(task: Task) -> Execution:
    """Return the declared execution of a task's submissions.

    Raises:
        TaskBroken: The task does not execute submissions.
    """
    if not isinstance(task.submission.execution, Execution):
        raise TaskBroken(f"Submissions to {task.id} are not programs.")
    return task.submission.execution


def check_program(task: Task, submission: BinaryIO, public: Path, seconds: float) -> None:
    """Check a program by its predictions for the sample inputs.

    Args:
        task: The task.
        submission: The program.
        public: The folder of public files.
        seconds: Maximum execution time.

    Raises:
        InvalidSubmission: The program is too large or fails, or its predictions are not well-formed.
        TaskBroken: The task has no sample inputs.
    """
    execution = execution_of(task).model_copy(update={"seconds": seconds})
    task = task.model_copy(update={"submission": task.submission.model_copy(update={"execution": execution})})
    executed = _execute(task, submission, public, public)
    fault = _fault(task, executed.predictions, _read(public / SAMPLE_INPUTS, public=True), public)
    if fault is not None:
        raise InvalidSubmission(f"{_outputs_of(task)} for the sample inputs are not valid: {fault}")


def score_program(task: Task, grader: Grader, submission: Path, private: Path) -> Score:
    """Execute a program on the private inputs, and score its predictions with the task's grader.

    Raises:
        InvalidSubmission: The program can't be scored.
        TaskBroken: The task itself is faulty.
    """
    public = private.parent / "public"
    with open_regular(submission) as file:
        executed = _execute(task, file, private, public)
    fault = _fault(task, executed.predictions, _read(private / INPUTS, public=False), public)
    refused = f"{_outputs_of(task)} for the private inputs are not valid. `mleredux validate` shows what is wrong."
    if fault is not None:
        raise InvalidSubmission(refused)
    with tempfile.TemporaryDirectory(prefix="mleredux-predictions-") as folder:
        path = Path(folder) / PREDICTIONS
        path.write_bytes(executed.predictions)
        form = task.submission.model_copy(update={"file": PREDICTIONS, "sample": SAMPLE_PREDICTIONS, "execution": None})
        try:
            result = grader.score(
                GradingInput(path, private, task.model_copy(update={"submission": form}), task.metric.options)
            )
        except InvalidSubmission:
            raise InvalidSubmission(refused) from None
    scored = result if isinstance(result, Score) else Score(value=float(result))
    return scored.model_copy(update={"details": {**scored.details, **executed.details}})


def _outputs_of(task: Task) -> str:
    return f"The predictions of {task.submission.file}"


def _execute(task: Task, submission: BinaryIO, data: Path, public: Path) -> Executed:
    execution, known = execution_of(task), data == public
    inputs = _read(data / (SAMPLE_INPUTS if known else INPUTS), public=known)
    size = os.fstat(submission.fileno()).st_size
    if size > execution.size_mb * 2**20:
        raise InvalidSubmission(f"{task.submission.file} is larger than {plain(execution.size_mb)} MiB.")
    if not size:
        raise InvalidSubmission(f"{task.submission.file} is empty.")
    name = "submission.zip" if task.submission.file.endswith(".zip") else "submission.py"
    files = {name: submission.read(), "runner.py": Path(__file__).with_name("runner.py").read_bytes()}
    files |= {part: (public / part).read_bytes() for part in execution.public}
    limits: dict[str, Any] = {
        "seconds": execution.seconds,
        "memory_mb": execution.memory_mb,
        "disk_mb": execution.disk_mb,
        "hidden": _hidden(),
        "known_answers": known_answers(task),
        "private": [public.parent],
    }
    arguments = ["runner.py", execution.kind, name]
    if execution.kind == "service":
        return _serve(task, inputs, arguments, files, limits)
    if execution.kind == "policy":
        return _act(task, inputs, arguments, files, limits)
    files[INPUTS] = inputs.path.read_bytes()
    columns = json.dumps([task.submission.id_columns, _targets(task)])
    confined = run_confined(arguments, files, [PREDICTIONS], variables={"COLUMNS": columns}, **limits)
    _expect_end(task, confined, inputs)
    if PREDICTIONS not in confined.files:
        raise InvalidSubmission(f"{task.submission.file} wrote no {PREDICTIONS}{_for(inputs)}.")
    return Executed(confined.files[PREDICTIONS])


def _serve(
    task: Task, inputs: _Inputs, arguments: Sequence[str], files: dict[str, bytes], limits: dict[str, Any]
) -> Executed:
    execution, targets = execution_of(task), _targets(task)
    bodies = [json.dumps(dict(zip(inputs.header, row, strict=True))) for row in inputs.rows]
    order = [number % len(bodies) for number in range(max(execution.requests, len(bodies)))]
    load = {
        "port": _PORT,
        "bodies": bodies,
        "order": order,
        "clients": execution.clients,
        "deadline": execution.deadline,
    }
    confined = run_confined(arguments, files, [], variables={"PORT": str(_PORT)}, load=load, **limits)
    measured = json.loads(confined.files.get("load.json", b'{"started": null}'))
    if measured["started"] is None:
        _expect_end(task, confined, inputs)
        raise InvalidSubmission(f"{task.submission.file} did not answer on 127.0.0.1, port $PORT{_for(inputs)}.")
    cells: list[dict[str, str] | None] = [{} for _ in bodies]
    latencies = sorted(answer[0] for answer in measured["answers"] if answer is not None)
    for place, answer in zip(order, measured["answers"], strict=True):
        cells[place] = _worse(cells[place], _answer(answer, targets))
    places = [inputs.header.index(name) for name in task.submission.id_columns]
    missing = dict.fromkeys(targets, execution.missing)
    if inputs.public and None in cells:
        raise InvalidSubmission(
            f"{task.submission.file} did not return a valid prediction for {cells.count(None)} of {len(cells)} sample "
            f"inputs within {plain(execution.deadline)} seconds; return a JSON object with {', '.join(targets)}."
        )
    rows = [
        [*(row[place] for place in places), *(prediction or missing).values()]
        for row, prediction in zip(inputs.rows, cells, strict=True)
    ]
    in_time = sum(answer is not None and answer[1] is not None for answer in measured["answers"])
    latency = {
        f"p{share}_ms": round(1e3 * latencies[min(len(latencies) - 1, math.ceil(share / 100 * len(latencies)) - 1)], 3)
        for share in (50, 95, 99)
        if latencies
    }
    details = {
        "requests": len(order),
        "in_time": in_time,
        "clients": execution.clients,
        "deadline_ms": 1e3 * execution.deadline,
        "start_seconds": round(measured["started"], 3),
        "requests_per_second": round(len(latencies) / measured["seconds"], 1) if measured["seconds"] else None,
        **latency,
    }
    return Executed(_table([*task.submission.id_columns, *targets], rows), {"service": details})


def _answer(answer: Any, targets: Sequence[str]) -> dict[str, str] | None:
    """Return the answer to a request; None if it came too late, or is not valid."""
    if answer is None or answer[1] is None:
        return None
    try:
        document = json.loads(answer[1])
        values = {name: document[name] for name in targets}
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if any(isinstance(value, bool) or not isinstance(value, str | int | float) for value in values.values()):
        return None
    return {name: str(value)[:_SHOWN].encode("utf-8", "replace").decode() for name, value in values.items()}


def _worse(before: dict[str, str] | None, now: dict[str, str] | None) -> dict[str, str] | None:
    """Return the answer that counts: None if either is missing or the two differ."""
    return now if before == {} or before == now else None


def _act(
    task: Task, inputs: _Inputs, arguments: Sequence[str], files: dict[str, bytes], limits: dict[str, Any]
) -> Executed:
    make = execution_of(task).environment
    if make is None or "seed" not in inputs.header:
        raise TaskBroken(f"Task {task.id} requires a policy, but declares no environment or no seeds.")
    environment, returns = make(inputs.path.parent), list[list[str]]()
    place, invalid = inputs.header.index("seed"), False

    def exchange(replies: BinaryIO, requests: BinaryIO) -> None:
        nonlocal invalid
        for row in inputs.rows:
            requests.write(b"\n")
            total = _episode(environment, int(row[place]), replies, requests)
            if isinstance(total, bool):
                invalid = total
                return
            returns.append([row[place], repr(float(total))])

    confined = run_confined(arguments, files, [], talk=exchange, **limits)
    if invalid:
        raise InvalidSubmission(f"{task.submission.file} chose an action that is not valid{_for(inputs)}.")
    if len(returns) < len(inputs.rows):
        _expect_end(task, confined, inputs)
        raise InvalidSubmission(f"{task.submission.file} ended before the last episode{_for(inputs)}.")
    return Executed(_table(["seed", "return"], returns))


def _episode(environment: Environment, seed: int, replies: BinaryIO, requests: BinaryIO) -> float | bool:
    """Compute the return of an episode, or else True if an action was invalid, and False if the policy has ended."""
    observation, _ = environment.reset(seed=seed)
    total = 0.0
    while True:
        requests.write(json.dumps(observation).encode() + b"\n")
        requests.flush()
        line = replies.readline(_MOST_LINE)
        if not line:
            return False
        try:
            observation, reward, terminated, truncated, _ = environment.step(json.loads(line))
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
            return True
        total += reward
        if terminated or truncated:
            return total


def _expect_end(task: Task, confined: Confined, inputs: _Inputs) -> None:
    """Check that a program ended normally.

    Raises:
        InvalidSubmission: The program did not end normally.
    """
    execution, file = execution_of(task), task.submission.file
    if confined.limit == "time":
        raise InvalidSubmission(f"{file} took longer than {plain(execution.seconds)} seconds{_for(inputs)}.")
    if confined.limit == "memory":
        raise InvalidSubmission(f"{file} used more than {execution.memory_mb:,} MB of memory{_for(inputs)}.")
    if confined.code:
        last = [line.strip() for line in confined.log.splitlines() if line.strip()][-1:] if inputs.public else []
        why = "".join(f": {' '.join(line.split())[:_SHOWN]}" for line in last)
        code = f" with exit code {confined.code}" if inputs.public else " with an error"
        raise InvalidSubmission(f"{file} ended{code}{_for(inputs)}{why.rstrip('.')}.")


def _for(inputs: _Inputs) -> str:
    return " on the sample inputs" if inputs.public else " on the private inputs"


def _read(path: Path, *, public: bool) -> _Inputs:
    message = f"A task that executes submissions must prepare {path.name}"
    with file_errors(TaskBroken, message, None, csv.Error), path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    if not rows:
        raise TaskBroken(f"{message}: it is empty.")
    return _Inputs(path, rows[0], rows[1:], public)


def _targets(task: Task) -> tuple[str, ...]:
    if not task.submission.target_columns:
        raise TaskBroken(f"Task {task.id} executes submissions, so it must declare its `target_columns`.")
    return task.submission.target_columns


def _fault(task: Task, predictions: bytes, inputs: _Inputs, public: Path) -> str | None:
    """Return the first error in the format of predictions, according to the sample and the grader's own check."""
    from mleredux._core.submissions.schema import make_schema
    from mleredux._core.submissions.validation import grader_of, validate

    if execution_of(task).kind == "policy":
        return None
    example = _read(public / SAMPLE_PREDICTIONS, public=True)
    ids = task.submission.id_columns
    filled = dict(zip(example.header, example.rows[0], strict=True))
    places = {name: inputs.header.index(name) for name in ids}
    rows = [[row[places[name]] if name in places else filled[name] for name in example.header] for row in inputs.rows]
    with tempfile.TemporaryDirectory(prefix="mleredux-form-") as folder:
        here = Path(folder)
        (here / SAMPLE_PREDICTIONS).write_bytes(_table(example.header, rows))
        (here / PREDICTIONS).write_bytes(predictions)
        form = Submission(
            file=PREDICTIONS,
            sample=SAMPLE_PREDICTIONS,
            id_columns=ids,
            target_columns=_targets(task),
            types=task.submission.types,
        )
        sample_task = task.model_copy(update={"submission": form})
        schema, grader = make_schema(sample_task, here, here), grader_of(sample_task)
        if grader is not None and grader.check is not None:
            schema = schema.model_copy(update={"ids": None, "reference": here / SAMPLE_PREDICTIONS})
        elif schema.ids is not None:
            schema = schema.model_copy(update={"ids": here / schema.ids})
        verdict = validate(schema, here / PREDICTIONS, task=sample_task)
    return None if verdict.valid else verdict.message


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue().encode()


def _hidden() -> list[str]:
    """Return the folders of packages that no program may read: mleredux, this kit and plugins."""
    from mleredux._core.plugins import current

    names = {
        "mleredux",
        __name__.partition(".")[0],
        *(plugin.target.partition(":")[0].partition(".")[0] for plugin in current().plugins),
    }
    return sorted({path for name in names for path in _folders(name)})


def _folders(name: str) -> list[str]:
    """Return the folders of a package without importing it."""
    try:
        module = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return []
    places = (module.submodule_search_locations or ()) if module is not None else ()
    return [str(path.resolve()) for place in places if (path := Path(place)).is_dir()]
