"""Check end to end, with a scripted language model, that findings reach an LLM agent and are applied.

`python benchmarks/hypothesis_llm.py --markdown docs/reference/hypothesis-llm.md`

The agent `command` runs a coding program in the process sandbox; its model is scripted (`scripted_reader/`), answers
through the gateway, and acts on findings that its rules recognise in the prompt. Contexts are created as in
`hypothesis.py`, for tables of its first plan.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
import tempfile
import time
from pathlib import Path

import hypothesis
import mleredux
import numpy as np
from _measuring import machine, table
from mleredux._core.data import DataStore
from mleredux._core.data.medals import read_leaderboard, thresholds
from mleredux._core.plugins import Catalogue
from mleredux._core.plugins.catalogue import set_current
from mleredux._core.stages.prepare import prepare
from mleredux_scripted_llm import ScriptedLlm

HERE = Path(__file__).parent
CODER = HERE.parent / "plugins/agents/command/tests/tiny-coder/index.js"
TASKS = ("synthetic-public-1", "synthetic-public-6")
ARMS = ("none", "sham", "technique", "oracle")


def main() -> None:
    """Create contexts, run the agent on each table in each arm, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", type=Path, help="write the page here")
    parser.add_argument("--data-dir", type=Path, default=Path(tempfile.gettempdir()) / "mleredux-hypothesis-llm")
    options = parser.parse_args()
    began, folder = time.time(), options.data_dir
    folder.mkdir(parents=True, exist_ok=True)
    set_current(Catalogue())
    hypothesis.write_contexts(dict(hypothesis._statements((task, folder)) for task in TASKS), folder / "hypothesis")
    rows = [_run(task, arm, folder) for task in TASKS for arm in ARMS]
    page = _page(rows, time.time() - began, shlex.join(["python", *sys.argv]))
    options.markdown.write_text(page, encoding="utf-8") if options.markdown else print(page)


def _run(task: str, arm: str, folder: Path) -> dict[str, object]:
    """Run the agent once; return its notes and its score."""
    path = folder / "hypothesis" / arm / f"{task}.md"
    context = path.read_text(encoding="utf-8") if arm != "none" else None
    with ScriptedLlm(HERE / "scripted_reader" / "scenario.yaml") as llm:
        os.environ.update(llm.environment())
        made = mleredux.run(
            *(task, "command"), sandbox="process", context=context, seed=0, time_limit=300,
            options={
                "command": f'OMP_NUM_THREADS=1 exec node {CODER} "$MLEREDUX_MODEL" "$MLEREDUX_PROMPT_FILE"',
                "model": "gpt-4.1", "libraries": "none",
            },
            runs_dir=folder / "llm-runs", data_dir=folder / "data",
        )  # fmt: skip
        used = [name for name in llm.used if name != "end"]
    log = made.agent_log.read_text(errors="replace")
    told, report = re.search(r"^leaks (.*), folds (.*), names (.*)$", log, re.M), made.report
    if report is None or report.score is None or told is None:
        raise SystemExit(f"{task}, {arm}: no valid submission: {made.message}\n{log[-2_000:]}")
    catalogue = Catalogue()
    private = prepare(catalogue.task(task), catalogue, DataStore(folder / "data")).private
    marks = thresholds(read_leaderboard(private / "leaderboard.csv"))
    sign = -1 if report.is_lower_better else 1
    gap = sign * (report.score - marks.median) / abs(marks.gold - marks.median)
    return {
        "task": task, "arm": arm, "calls": " → ".join(used), "leaks": told[1], "folds": told[2].removeprefix("- "),
        "gap": max(gap, -1.0),
    }  # fmt: skip


def _page(rows: list[dict[str, object]], seconds: float, command: str) -> str:
    lines = [["task", "arm", "what it did", "not used", "folds", "gap to median"]]
    for row in rows:
        shown = [f"`{row['task']}`", row["arm"], row["calls"], row["leaks"], row["folds"], f"{row['gap']:+.2f}"]
        lines.append([str(one) for one in shown])
    means = {arm: np.mean([row["gap"] for row in rows if row["arm"] == arm]) for arm in ARMS}
    mean = ", ".join(f"{arm} {value:+.2f}" for arm, value in means.items())
    return PAGE.format(
        command=command, machine=machine(), minutes=seconds / 60, runs=len(rows), tasks=len(TASKS), table=table(*lines),
        mean=mean,
    )  # fmt: skip


PAGE = """\
# Findings reach language-model agents

Made by `{command}`: {tasks} tables, {runs} runs, one seed (nothing is random).
{machine} It took {minutes:.1f} minutes, excluding results kept from an earlier run.

The agent `command` runs a coding program in the process sandbox. Its model is scripted: it answers through the gateway,
and has one rule for each kind of finding (columns not to use, folds, categories), which notes the columns that the
prompt names. Then it writes the same script in all runs, which applies its notes. Contexts are made as for
[the hypothesis](hypothesis.md), on tables of its first plan.

Mean gap to the median: {mean}.

{table}

This shows that findings of techniques get into the prompt of a language-model agent, through sandbox and gateway, in a
form that a rule can read, and that the agent turns their content into code, which changes the score. It does **not**
show that a language model would read, believe or understand them: the rules were written for these lines. {tasks}
tables say nothing about the size of the effect. """

if __name__ == "__main__":
    main()
