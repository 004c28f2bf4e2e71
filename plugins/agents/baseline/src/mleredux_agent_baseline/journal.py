"""Log, trace, first submission and validation, without heavy libraries."""

from __future__ import annotations

import time
from pathlib import Path

from mleredux_agentkit import Task, Trajectory

from mleredux_agent_baseline.files import Facts, NotForBaseline, find_sample, read_facts


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
