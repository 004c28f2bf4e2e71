"""Run coding programs with a scripted model: `MLEREDUX_BASE_IMAGE=IMAGE uv run python benchmarks/recipes.py [NAME...]`.

Each is installed in an image and runs on `digits` through the gateway; NAME is a recipe of `command`, or
`harbor:AGENT`. With `--programs FOLDERS`, recipes use the programs in these folders instead, in the process sandbox:

    npm install --prefix /tmp/cli @anthropic-ai/claude-code @openai/codex
    uv run python benchmarks/recipes.py --programs /tmp/cli/node_modules/.bin claude-code codex

The model calls an offered shell tool once, twice in its reply, to copy the sample submission; for a program without
one, it writes a script. `--fault` makes its first reply fail. The last column states whether the record of calls, the
ledger, the rollout, exports, pages, lists, the server and trackers show the same calls, tokens and cost.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import mleredux
from _measuring import machine, table
from mleredux_agent_command.recipes import find_recipe, recipe_names
from mleredux_scripted_llm import ScriptedLlm
from mleredux_support.usage import PLACES, assert_same_usage

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
FAULTS: dict[str, dict[str, Any]] = {
    "429": {"error": {"status": 429, "message": "Slow down.", "retry_after": 1}},
    "500": {"error": {"status": 500, "message": "Broken."}},
    "503": {"error": {"status": 503, "message": "Overloaded.", "retry_after": 1}},
    "529": {"error": {"status": 529, "message": "Overloaded."}},
    "html": {"malformed": "html"},
    "length": {"text": "This is cut", "finish": "length", "usage": {"prompt": 5000, "completion": 77}},
    "truncated": {"text": " ".join(map(str, range(200))), "malformed": "truncated"},
}
"""First replies to requests with tools."""
TOKEN = "sk-scripted"


def scenario(fault: str | None, *, described: bool) -> dict[str, Any]:
    """Return the rules of the model: a command with the first offered shell tool, else a file; then the end.

    Args:
        fault: What happens instead of the first reply; a key of `FAULTS`.
        described: Whether calls have a description, which some programs require, and with which Vibe submits nothing.
    """
    rules: list[dict[str, Any]] = [{"when": {"has_tools": True}, "times": 1, "reply": FAULTS[fault]}] if fault else []
    for name, given in SHELLS.items():
        arguments = {key: value for key, value in given.items() if described or key != "description"}
        usage = {"prompt": 10_000, "cached": 4_000, "completion": 70, "reasoning": 20}
        reply = {"text": "I copy.", "tools": [{"name": name, "arguments": arguments}] * 2, "usage": usage}
        rules.append({"name": name, "when": {"tools": [name]}, "reply": reply, "times": 1})
    usage = {"prompt": 30_000, "cached": 20_000, "completion": 5}
    rules.append({"name": "end", "when": {"has_tools": True}, "reply": {"text": "DONE", "usage": usage}})
    file = f"I copy the sample.\n\ncode/solution.py\n```python\n{SCRIPT}```\n"
    rules.append({"name": "file", "times": 1, "reply": {"text": file}})
    rules.append({"name": "text", "reply": {"text": "DONE"}})
    return {"models": ["scripted-1"], "rules": rules}


def compared(run: mleredux.Run) -> str:
    """Return whether all places show the same usage of a run, and which it is."""
    if not run.report or not run.report.ledger or not run.report.ledger.llm:
        return "no ledger"
    try:
        assert_same_usage(run)
    except AssertionError as error:
        return f"differs: {error}"
    llm = run.report.ledger.llm
    cost = "no price" if llm.cost_usd is None else f"{llm.cost_usd:.4f} USD"
    return f"{llm.prompt_tokens:,} + {llm.completion_tokens:,} tokens, {cost}, in {len(PLACES)} places"


def measured(name: str, home: Path, programs: str | None, fault: str | None) -> tuple[str, ...]:
    """Return a row: image size, seconds of the build and of the agent, number of calls, outcome, and usage."""
    kind, _, agent = name.rpartition(":")
    options: dict[str, Any] = {"recipe": agent, "libraries": "none"}
    if programs:
        node = Path(shutil.which("node") or "/usr/bin/node").parent
        setting = (
            f'export PATH="{programs}:$PATH:{node}" IS_SANDBOX=1'  # without it, Claude Code refuses to run as root
        )
        options["command"] = f"{setting}\n{find_recipe(agent).command}"
    if kind:
        arguments = json.dumps(HARBOR.get(agent, {}))
        options = {"name": agent, "model": "openai/gpt-4.1", "libraries": "none", "arguments": arguments}
    began = time.perf_counter()
    with ScriptedLlm(scenario(fault, described=not kind), key=TOKEN) as llm:
        os.environ.update(llm.environment(TOKEN))
        try:
            run = mleredux.run(
                *("digits", "harbor-agent" if kind else "command"),
                sandbox="process" if programs else "docker",
                options=options,
                time_limit=300,
                runs_dir=home / "runs",
                data_dir=home / "data",
            )
        except mleredux.MlereduxError as error:
            return name, "-", "-", "-", "-", str(error), "-"
    took = run.outcome.seconds if run.outcome else None
    image = run.use.image or ""
    inspect_command = ("docker", "image", "inspect", "--format", "{{.Size}}", image)
    size = subprocess.run(inspect_command, capture_output=True, text=True, check=False).stdout.strip()
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
        compared(run),
    )


def main() -> None:
    """Run the programs, and print each row as soon as it is complete."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--programs", metavar="FOLDERS", help="separated by colons")
    parser.add_argument("--fault", choices=sorted(FAULTS))
    options = parser.parse_args()
    names = options.names or [*recipe_names(), *(() if options.programs else (f"harbor:{name}" for name in HARBOR))]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CONFIG_HOME"] = folder
        for name in names:
            rows.append(measured(name, Path(folder), options.programs, options.fault))
            sys.stderr.write(f"{' · '.join(rows[-1])}\n")
    head = ("program", "image", "build and grade", "agent", "calls", "score", "usage")
    sys.stdout.write(f"{machine()}\n\n{table(head, *rows)}\n")


if __name__ == "__main__":
    main()
