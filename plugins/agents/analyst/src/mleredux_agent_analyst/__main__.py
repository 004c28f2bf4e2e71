"""`python -m mleredux_agent_analyst`: reads the question, answers it, and leaves a log and a rollout."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
import urllib.request
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

TECHNIQUES = ("imbalance", "missing", "encoding", "cv", "scaling", "leakage")


def main() -> int:
    """Run the agent; the exit code is 0 where there is a document."""
    output = Path(os.environ.get("MLEREDUX_OUTPUT_DIR", "/output"))
    data = Path(os.environ.get("MLEREDUX_DATA_DIR", "/task/data"))
    task_dir = Path(os.environ.get("MLEREDUX_TASK_DIR", "/task"))
    trace = Trace(output, task_dir)
    from mleredux_agent_analyst.tables import NoQuestion, read

    try:
        tables = read(data)
        if tables.technique not in TECHNIQUES:
            raise NoQuestion(f"the technique {tables.technique!r} is not one of {', '.join(TECHNIQUES)}")
    except NoQuestion as error:
        trace.step("Look for the question.", "read_question", {}, str(error))
        return 0 if _hand_in_sample(trace, data, task_dir) else 1
    rows = {"train": len(tables.train), "test": None if tables.test is None else len(tables.test)}
    trace.step("Read the question and its tables.", "read_question", {"technique": tables.technique}, json.dumps(rows))
    document = import_module(f"mleredux_agent_analyst.{tables.technique}").analyse(tables)
    text = json.dumps(document, indent=1, allow_nan=False) + "\n"
    path = Path(os.environ.get("MLEREDUX_SUBMISSION") or output / f"{tables.technique}_analysis.json")
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
    trace.step(
        "Answer with statistics of the tables and rules of thumb.",
        "write_submission",
        {"path": path.name},
        text[:5_000],
    )
    if url := os.environ.get("MLEREDUX_VALIDATE_URL"):
        trace.step("Ask whether the document is well-formed.", "validate", {}, _validate(url))
    return 0


def _hand_in_sample(trace: Trace, data: Path, task_dir: Path) -> bool:
    """A competition gets its sample submission, where it has one: there is nothing to analyse."""
    path = os.environ.get("MLEREDUX_SUBMISSION")
    try:
        sample = data / json.loads((task_dir / "task.json").read_bytes())["sample"]
        shutil.copyfile(sample, Path(path or ""))
    except (OSError, ValueError, KeyError, TypeError) as error:
        trace.step("Stopped: there is no question and no sample.", "write_submission", {}, str(error))
        return False
    trace.step("Hand in the sample submission, for want of a question.", "write_submission", {}, sample.name)
    return True


class Trace:
    """Log and rollout (ATIF v1.7), written whole after each step."""

    def __init__(self, output: Path, task_dir: Path) -> None:
        self.log = output / "logs" / "analyst.log"
        self.path = output / "rollout" / "trajectory.json"
        self.started = time.monotonic()
        for path in (self.log, self.path):
            path.parent.mkdir(parents=True, exist_ok=True)
        try:
            prompt = (task_dir / "description.md").read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            prompt = f"(description.md can't be read: {error.strerror})"
        self.document: dict[str, Any] = {
            "schema_version": "ATIF-v1.7",
            "session_id": os.environ.get("MLEREDUX_TASK", "task"),
            "agent": {"name": "analyst", "version": "1", "extra": {"llm": False}},
            "steps": [{"step_id": 1, "timestamp": _now(), "source": "user", "message": prompt[:20_000]}],
        }

    def step(self, message: str, function: str, arguments: dict[str, Any], result: str) -> None:
        """Add what was done, and what came back."""
        number = len(self.document["steps"]) + 1
        line = f"[{time.monotonic() - self.started:6.1f} s] {message} {result.splitlines()[0][:200] if result else ''}"
        print(line, flush=True)
        with self.log.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
        call = f"call_{number}"
        self.document["steps"].append(
            {
                "step_id": number,
                "timestamp": _now(),
                "source": "agent",
                "message": message,
                "tool_calls": [{"tool_call_id": call, "function_name": function, "arguments": arguments}],
                "observation": {"results": [{"source_call_id": call, "content": result}]},
                "llm_call_count": 0,
            }
        )
        self.document["final_metrics"] = {"total_steps": number}
        temporary = self.path.with_name(f".{self.path.name}.part")
        temporary.write_text(json.dumps(self.document, indent=1) + "\n", encoding="utf-8")
        temporary.replace(self.path)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _validate(url: str) -> str:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(urllib.request.Request(url, data=b"", method="POST"), timeout=60) as answer:
            return str(json.loads(answer.read()).get("message", ""))
    except (OSError, ValueError, AttributeError) as error:
        return f"no answer: {error}"


if __name__ == "__main__":
    sys.exit(main())
