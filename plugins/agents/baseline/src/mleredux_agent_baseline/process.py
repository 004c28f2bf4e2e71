"""Run an agent in a thread, so that the process stops in time regardless of what a model is doing; its log and trace.

Compiled code of libraries does not handle signals. So the main thread waits for the deadline or SIGTERM, and then exits
immediately. Submission, log and rollout are always valid, because they are replaced atomically after each step. No
heavy library is imported.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mleredux_agentkit import Task, Trajectory, work_until

from mleredux_agent_baseline.files import Facts, NotForBaseline, find_sample, read_facts

__all__ = ["Journal", "run_agent"]


class Journal:
    """Log and trace of a run, written during the run."""

    def __init__(self, task: Task, name: str = "baseline") -> None:
        self.task = task
        self.facts: Facts = read_facts(task.task_dir)
        self.log_path = task.output_dir / "logs" / f"{name}.log"
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        self.rollout = Trajectory(task, name)
        self.version = 0

    def log(self, message: str) -> None:
        """Write a line to the log and to standard output."""
        line = f"[{time.time() - self.task.started:7.1f} s] {message}"
        print(line, flush=True)
        with self.log_path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def submit_sample(self) -> Path | None:
        """Submit the sample, so that there is a submission from the start."""
        task = self.task
        try:
            sample = find_sample(task.data_dir, self.facts)
            if sample.suffix.lower() != task.submission.suffix.lower():
                self.log(f"{sample.name} can't be submitted as it is")
                return sample
            task.submit(sample)
        except (NotForBaseline, OSError, ValueError) as error:
            self.log(f"there is no sample to submit: {error}")
            self.rollout.say(f"There is no sample to submit: {error}.", is_buggy=True)
            return None
        self.version = 1
        self.log(f"submitted {sample.name} as the first version")
        self.rollout.act(
            "Submit the sample submission first, so that there is a valid one from the start.",
            "write_submission", {"source": sample.name}, f"wrote {task.submission.name}",
            stage="draft", model="sample submission", submission_version=1, is_buggy=False,
        )  # fmt: skip
        return sample

    def validate(self) -> None:
        """Validate the submission once with the sandbox's endpoint."""
        if result := self.task.validate():
            self.log(f"validation: {result}")
            self.rollout.act("Check whether the submission is well-formed.", "validate", {}, result, stage="submit")


def run_agent(name: str, options: Mapping[str, Any], work: Callable[[Journal], None]) -> int:
    """Submit the sample, then work; return exit code 0 if there is a submission and no error.

    Args:
        name: The agent's id, for its log and rollout.
        options: Defaults of its options.
        work: Called once the sample is submitted; import heavy libraries there.
    """
    task = Task(options=options)
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "LOKY_MAX_CPU_COUNT"):
        os.environ[variable] = str(task.cpus)
    os.environ.setdefault("MPLCONFIGDIR", str(task.scratch_dir))
    task.output_dir.mkdir(parents=True, exist_ok=True)
    started: list[Journal] = []

    def begin() -> None:
        started.append(journal := Journal(task, name))
        if journal.submit_sample() is not None:
            work(journal)

    ended = work_until(task.deadline, begin)
    submitted = task.submission.is_file()
    if ended.error:
        print(ended.error, file=sys.stderr)
    if started and (ended.error or ended.stopped_by):
        reason = f"stopped by {ended.stopped_by}" if ended.stopped_by else "an error"
        started[0].log(f"{reason}; {'the last submission is kept' if submitted else 'there is no submission'}")
        started[0].rollout.say(f"Stopped: {reason}.", stage="submit", is_buggy=bool(ended.error))
    return 0 if submitted and not ended.error else 1
