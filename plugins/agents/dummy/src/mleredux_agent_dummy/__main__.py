"""Copies the sample submission, and leaves what every agent may leave: code and a rollout. Standard library alone."""

from __future__ import annotations

import json
import os
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

CODE = """\
import shutil
import sys

# python solution.py DATA_DIR SUBMISSION
shutil.copyfile(sys.argv[1] + "/{sample}", sys.argv[2])
"""


def main() -> int:
    """Run the agent; the exit code is 1 where the task has no sample submission."""
    task_dir = Path(os.environ["MLEREDUX_TASK_DIR"])
    output_dir = Path(os.environ["MLEREDUX_OUTPUT_DIR"])
    submission = Path(os.environ["MLEREDUX_SUBMISSION"])
    name = json.loads((task_dir / "task.json").read_text(encoding="utf-8")).get("sample")
    sample = Path(os.environ["MLEREDUX_DATA_DIR"]) / name if name else None
    write(output_dir / "code" / "solution.py", CODE.format(sample=name or "sample_submission.csv"))
    if sample is None or not sample.is_file():
        result = f"{name} is not among the public files" if name else "the task has no sample submission"
    else:
        shutil.copyfile(sample, submission)
        result = f"copied {name} to {submission.name}"
    print(result)
    rollout = trace(os.environ.get("MLEREDUX_TASK", "task"), name or "", result, failed=not submission.is_file())
    write(output_dir / "rollout" / "trajectory.json", json.dumps(rollout, indent=1) + "\n")
    return 0 if submission.is_file() else 1


def trace(task: str, sample: str, result: str, *, failed: bool) -> dict[str, Any]:
    """The agent's only step as an ATIF document."""
    time = datetime.now(UTC).isoformat(timespec="milliseconds")
    call = {"tool_call_id": "call_2", "function_name": "copy_sample", "arguments": {"sample": sample}}
    return {
        "schema_version": "ATIF-v1.7",
        "session_id": task,
        "agent": {"name": "dummy", "version": "1"},
        "steps": [
            {"step_id": 1, "timestamp": time, "source": "user", "message": f"Solve the task {task}."},
            {
                "step_id": 2,
                "timestamp": time,
                "source": "agent",
                "message": "Hand in the sample submission.",
                "tool_calls": [call],
                "observation": {"results": [{"source_call_id": "call_2", "content": result}]},
                "llm_call_count": 0,
                "extra": {"stage": "submit", "model": "sample submission", "is_buggy": failed},
            },
        ],
        "final_metrics": {"total_steps": 2},
    }


def write(path: Path, text: str) -> None:
    """Write a text file, its folder included."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
