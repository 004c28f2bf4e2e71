"""What the agent keeps of its work, and what needs no heavy library: log, trace, first submission, validation."""

from __future__ import annotations

import json
import shutil
import time
import urllib.request
from pathlib import Path

from mleredux_agent_baseline.facts import Facts, read_facts
from mleredux_agent_baseline.files import NotForBaseline, find_sample
from mleredux_agent_baseline.rollout import Rollout
from mleredux_agent_baseline.settings import Settings


class Journal:
    """Log and trace of a run, written as it goes."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.facts: Facts = read_facts(settings.task_dir)
        self.log_path = settings.output_dir / "logs" / "baseline.log"
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        self.rollout = Rollout(
            settings.output_dir / "rollout" / "trajectory.json", settings.task, _prompt(settings.task_dir)
        )
        self.version = 0

    def log(self, message: str) -> None:
        """Write a line to the log and to standard output."""
        line = f"[{time.time() - self.settings.started:7.1f} s] {message}"
        print(line, flush=True)
        with self.log_path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def submit_sample(self) -> Path | None:
        """Hand in the sample, so that there is a submission from the start."""
        settings = self.settings
        try:
            sample = find_sample(settings.data_dir, self.facts)
            if sample.suffix.lower() != settings.submission.suffix.lower():
                self.log(f"{sample.name} can't be handed in as it is")
                return sample
            temporary = settings.submission.with_name(f".{settings.submission.name}.part")
            shutil.copyfile(sample, temporary)
            temporary.replace(settings.submission)
        except (NotForBaseline, OSError, ValueError) as error:
            self.log(f"there is no sample to hand in: {error}")
            self.rollout.say(f"There is no sample to hand in: {error}.", {"is_buggy": True})
            return None
        self.version = 1
        self.log(f"handed in {sample.name} for a start")
        self.rollout.act(
            "Hand in the sample submission first, so that there is a valid one from the start.",
            "write_submission", {"source": sample.name}, f"wrote {settings.submission.name}",
            {"stage": "draft", "model": "sample submission", "submission_version": 1, "is_buggy": False},
        )  # fmt: skip
        return sample

    def validate(self) -> None:
        """Ask the sandbox once whether the submission is well-formed."""
        url = self.settings.validate_url
        if not url:
            return
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(urllib.request.Request(url, data=b"", method="POST"), timeout=60) as answer:
                result = str(json.loads(answer.read()).get("message", ""))
        except (OSError, ValueError, AttributeError) as error:
            result = f"no answer: {error}"
        self.log(f"validation: {result}")
        self.rollout.act("Ask whether the submission is well-formed.", "validate", {}, result, {"stage": "submit"})


def _prompt(task_dir: Path) -> str:
    parts = []
    for name in ("instructions.md", "description.md"):
        try:
            parts.append((task_dir / name).read_text(encoding="utf-8", errors="replace"))
        except OSError as error:
            parts.append(f"({name} can't be read: {error.strerror})")
    return "\n\n".join(parts)
