"""The information that the sandbox gives to an agent: paths, limits and options."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from mleredux_agentkit.files import copy


class Task:
    """The task of this run, read from the variables of the sandbox contract.

    Missing variables have the contract's defaults: `/task`, `/output`, an hour.

    Args:
        env: The environment variables.
        options: Options to use if `MLEREDUX_OPTIONS` is empty; needed only by programs that are also started manually.

    Attributes:
        name: The task's id, or `task` if it is obfuscated.
        task_dir: The folder of `description.md`, `instructions.md` and `task.json`; read-only.
        data_dir: The folder of public files; read-only.
        output_dir: The folder of stored files: `code`, `logs`, `rollout`, and the submission.
        submission: The file to write.
        scratch_dir: The folder for temporary files.
        started: Unix time at which this object was created.
        time_limit: Seconds that the run may take.
        end: Unix time at which the sandbox ends the run.
        deadline: Unix time at which the work should end: 3 % of the time limit before the sandbox's own deadline, but
            at least 2 and at most 60 seconds, and never more than a fifth of the time limit.
        cpus: Number of CPUs, at least 1.
        memory_mb: Memory in MB.
        validate_url: URL of the validation endpoint; None outside of a sandbox.
        options: All options of the agent.
    """

    def __init__(self, env: Mapping[str, str] = os.environ, *, options: Mapping[str, Any] | None = None) -> None:
        self.started = time.time()
        self.name = env.get("MLEREDUX_TASK", "task")
        self.task_dir = Path(env.get("MLEREDUX_TASK_DIR", "/task"))
        self.data_dir = Path(env.get("MLEREDUX_DATA_DIR", self.task_dir / "data"))
        self.output_dir = Path(env.get("MLEREDUX_OUTPUT_DIR", "/output"))
        self.submission = Path(env.get("MLEREDUX_SUBMISSION", self.output_dir / "submission.csv"))
        self.scratch_dir = Path(env.get("MLEREDUX_SCRATCH_DIR", "/tmp"))
        self.seed = int(env.get("MLEREDUX_SEED", 0))
        end = float(env.get("MLEREDUX_DEADLINE", self.started + float(env.get("MLEREDUX_TIME_LIMIT", 3600))))
        self.time_limit = float(env.get("MLEREDUX_TIME_LIMIT", end - self.started))
        self.end = end
        self.deadline = end - min(max(0.03 * self.time_limit, 2), 60, 0.2 * self.time_limit)
        self.cpus = max(1, int(float(env.get("MLEREDUX_CPUS", os.cpu_count() or 1))))
        self.memory_mb = int(float(env.get("MLEREDUX_MEMORY_MB", 4096)))
        self.validate_url = env.get("MLEREDUX_VALIDATE_URL") or None
        self.options: dict[str, Any] = {**(options or {}), **json.loads(env.get("MLEREDUX_OPTIONS") or "{}")}

    @property
    def left(self) -> float:
        """The seconds until the deadline; negative after it."""
        return self.deadline - time.time()

    @cached_property
    def facts(self) -> dict[str, Any]:
        """The part of `task.json` that describes the submission: `file`, `sample`, `id_columns`, `target_columns`,
        `metric`, `direction`; empty if it can't be read."""
        try:
            document = json.loads((self.task_dir / "task.json").read_bytes())
        except (OSError, ValueError):
            return {}
        return document if isinstance(document, dict) else {}

    @property
    def sample(self) -> Path | None:
        """The sample submission among the public files, if there is one."""
        name = self.facts.get("sample")
        path = self.data_dir / name if isinstance(name, str) and name else None
        return path if path is not None and path.is_file() else None

    @property
    def description(self) -> str:
        """The task's description, in Markdown."""
        return self._text("description.md")

    @property
    def instructions(self) -> str:
        """The instructions for every agent, in Markdown: folders, limits, how to validate."""
        return self._text("instructions.md")

    def prompt(self, introduction: str = "") -> str:
        """Return the first message to a language model: the introduction, the instructions, the description."""
        return "\n\n".join(filter(None, (introduction, self.instructions, self.description)))

    @property
    def notice(self) -> str | None:
        """The notice that the time is nearly over, once it exists."""
        path = self.task_dir / "notice.txt"
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else None

    def logs(self, name: str) -> Path:
        """Create a folder for the agent's own logs in `logs`, and return it."""
        folder = self.output_dir / "logs" / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def submit(self, source: Path) -> None:
        """Replace the submission with a copy of a file, atomically."""
        copy(source, self.submission)

    def validate(self) -> str:
        """Validate the submission with the sandbox, and return its message, which is empty outside of a sandbox."""
        return str(self.verdict()["message"])

    def verdict(self) -> dict[str, Any]:
        """Validate the submission with the sandbox, and return the verdict: `valid`, and a sentence as `message`."""
        if self.validate_url is None:
            return {"valid": False, "message": ""}
        import urllib.request

        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        request = urllib.request.Request(self.validate_url, data=b"", method="POST")
        try:
            with opener.open(request, timeout=60) as answer:
                document = json.loads(answer.read())
                return {"valid": document.get("valid") is True, "message": str(document.get("message", ""))}
        except (OSError, ValueError, AttributeError) as error:
            return {"valid": False, "message": f"no answer: {error}"}

    def _text(self, name: str) -> str:
        try:
            return (self.task_dir / name).read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            return f"({name} can't be read: {error.strerror})"
