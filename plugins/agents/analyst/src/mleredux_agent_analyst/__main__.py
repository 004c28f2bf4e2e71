"""`python -m mleredux_agent_analyst`: read the question, answer it, and write a log and a trajectory."""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module
from importlib.util import find_spec

from mleredux_agentkit import Task, Trajectory, write


def main() -> int:
    """Run the agent; return exit code 0 if it wrote a document."""
    task = Task()
    trace = Trace(task)
    from mleredux_agent_analyst.tables import NoQuestion, read

    try:
        tables = read(task.data_dir, thorough=bool(task.options.get("thorough")))
        name = f"mleredux_agent_analyst.answers.{tables.technique.replace('-', '_')}"
        if find_spec(name) is None:
            raise NoQuestion(f"this agent does not support the technique {tables.technique!r}")
    except NoQuestion as error:
        trace.step("Look for the question.", "read_question", {}, str(error))
        return 0 if _submit_sample(trace, task) else 1
    rows = {"train": len(tables.train), "test": None if tables.test is None else len(tables.test)}
    trace.step("Read the question and its tables.", "read_question", {"technique": tables.technique}, json.dumps(rows))
    document = import_module(name).analyse(tables)
    text = json.dumps(document, indent=1, allow_nan=False) + "\n"
    write(task.submission, text)
    answered = "Answer with table statistics and rules of thumb."
    trace.step(answered, "write_submission", {"path": task.submission.name}, text[:5_000])
    if problem := task.validate():
        trace.step("Validate the document's format.", "validate", {}, problem)
    return 0


def _submit_sample(trace: Trace, task: Task) -> bool:
    """Submit the sample submission of a competition, if any, since there is no question to answer."""
    if task.sample is None:
        trace.step("Stopped: found neither a question nor a sample submission.", "write_submission", {}, "")
        return False
    task.submit(task.sample)
    trace.step("Submit the sample submission, since there is no question.", "write_submission", {}, task.sample.name)
    return True


class Trace:
    """The log and the trajectory, both rewritten after each step."""

    def __init__(self, task: Task) -> None:
        self.started = time.monotonic()
        self.log = task.output_dir / "logs" / "analyst.log"
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.trajectory = Trajectory(task, "analyst", prompt=task.description)

    def step(self, message: str, function: str, arguments: dict[str, object], result: str) -> None:
        """Add an action and its result."""
        line = f"[{time.monotonic() - self.started:6.1f} s] {message} {result.splitlines()[0][:200] if result else ''}"
        print(line, flush=True)
        with self.log.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
        self.trajectory.act(message, function, arguments, result)


if __name__ == "__main__":
    sys.exit(main())
