"""Run coding programs with a scripted model: `MLEREDUX_BASE_IMAGE=IMAGE uv run python benchmarks/recipes.py [NAME...]`.

Each is installed in an image and runs on `digits` through the gateway; NAME is a recipe of `command`, or
`harbor:AGENT`. The model calls an offered shell tool once, to copy the sample submission; for a program without one, it
writes a script.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import mleredux
from _measuring import machine, table
from mleredux_agent_command.recipes import recipe_names
from mleredux_scripted_llm import ScriptedLlm

COPY = 'cp "$MLEREDUX_DATA_DIR/sample_submission.csv" "$MLEREDUX_SUBMISSION"'
SCRIPT = """\
import os, shutil
shutil.copy(os.environ["MLEREDUX_DATA_DIR"] + "/sample_submission.csv", os.environ["MLEREDUX_SUBMISSION"])
"""
SHELLS = {
    "Bash": {"command": COPY, "description": "Copy"},
    "bash": {"command": COPY, "description": "Copy"},
    "run_shell_command": {"command": COPY, "description": "Copy", "is_background": False},
    "exec_command": {"cmd": COPY},
    "execute_bash": {"command": COPY},
    "terminal": {"command": COPY},
    "shell_command": {"command": COPY},
    "shell": {"command": ["bash", "-lc", COPY]},
}
"""Names of shell tools, and their arguments."""
HARBOR = {
    "vibe": {"backend": "generic"},
}
"""Arguments of Harbor's agents."""
TOKEN = "sk-scripted"


def scenario(*, described: bool) -> dict[str, Any]:
    """Return the rules of the model: a command with the first offered shell tool, else a file; then the end.

    Args:
        described: Whether calls have a description, which some programs require, and with which Vibe submits nothing.
    """
    rules: list[dict[str, Any]] = [
        {"name": name, "when": {"tools": [name]}, "reply": {"tools": [{"name": name, "arguments": given}]}, "times": 1}
        for name, given in (
            (name, {key: value for key, value in given.items() if described or key != "description"})
            for name, given in SHELLS.items()
        )
    ]
    rules.append({"name": "end", "when": {"has_tools": True}, "reply": {"text": "DONE"}})
    file = f"I copy the sample.\n\ncode/solution.py\n```python\n{SCRIPT}```\n"
    rules.append({"name": "file", "times": 1, "reply": {"text": file}})
    rules.append({"name": "text", "reply": {"text": "DONE"}})
    return {"models": ["scripted-1"], "rules": rules}


def measured(name: str, home: Path) -> tuple[str, ...]:
    """Return a row: image size, seconds of the build and of the agent, number of calls, and outcome."""
    kind, _, agent = name.rpartition(":")
    options: dict[str, Any] = {"recipe": agent, "libraries": "none"}
    if kind:
        arguments = json.dumps(HARBOR.get(agent, {}))
        options = {"name": agent, "model": "openai/gpt-4.1", "libraries": "none", "arguments": arguments}
    began = time.perf_counter()
    with ScriptedLlm(scenario(described=not kind), key=TOKEN) as llm:
        os.environ.update(llm.environment(TOKEN))
        try:
            run = mleredux.run(
                *("digits", "harbor-agent" if kind else "command"),
                sandbox="docker",
                options=options,
                time_limit=300,
                runs_dir=home / "runs",
                data_dir=home / "data",
            )
        except mleredux.MlereduxError as error:
            return name, "-", "-", "-", "-", str(error)
    took = run.outcome.seconds if run.outcome else None
    image = run.use.image or ""
    asked = ("docker", "image", "inspect", "--format", "{{.Size}}", image)
    size = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    calls = run.report.ledger.llm.calls if run.report and run.report.ledger and run.report.ledger.llm else 0
    failed = f"{run.state}: {(run.message or '').partition(chr(10))[0]}"
    graded = f"{run.report.score:.3f}" if run.report and run.report.score is not None else failed
    whole = time.perf_counter() - began
    return (
        name,
        f"{int(size) / 1e6:,.0f} MB" if size else "-",
        f"{whole - (took or 0):,.0f} s",
        "-" if took is None else f"{took:,.1f} s",
        str(calls),
        graded,
    )


def main() -> None:
    """Run the programs, and print each row as soon as it is complete."""
    names = sys.argv[1:] or [*recipe_names(), *(f"harbor:{name}" for name in HARBOR)]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CONFIG_HOME"] = folder
        for name in names:
            rows.append(measured(name, Path(folder)))
            sys.stderr.write(f"{' · '.join(rows[-1])}\n")
    head = ("program", "image", "build and grade", "agent", "calls", "score")
    sys.stdout.write(f"{machine()}\n\n{table(head, *rows)}\n")


if __name__ == "__main__":
    main()
