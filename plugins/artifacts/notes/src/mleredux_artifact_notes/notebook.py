"""`notebook.ipynb`: the final code of a run as an executable notebook."""

from __future__ import annotations

import json
from typing import Any

from mleredux.errors import MlereduxError
from mleredux.plugin.artifact import Artifact, Run
from mleredux.plugin.files import write_atomically

from mleredux_artifact_notes.solutions import entry_of, final_code

PATH = "notebook.ipynb"

_SET_UP = """\
# The task's data, and the directories that the code expects.
import os, runpy, sys, tempfile
from pathlib import Path

import mleredux

TASK = {task}
prepared = mleredux.prepare(TASK)
work = Path(tempfile.mkdtemp(prefix="mleredux-notebook-"))
for folder in ("code", "logs", "rollout", "working", "submission"):
    (work / folder).mkdir()
(work / "input").symlink_to(prepared.public.resolve())
os.environ |= {{
    "MLEREDUX_TASK": TASK,
    "MLEREDUX_SEED": {seed},
    "MLEREDUX_DATA_DIR": str(prepared.public),
    "MLEREDUX_OUTPUT_DIR": str(work),
    "MLEREDUX_SUBMISSION": str(work / {file}),
    "MLEREDUX_SCRATCH_DIR": str(work / "working"),
}}
os.chdir(work)"""
_RUN = """\
sys.argv = [{entry}, os.environ["MLEREDUX_DATA_DIR"], os.environ["MLEREDUX_SUBMISSION"]]
sys.path.insert(0, str(work / "code"))
try:
    runpy.run_path(str(work / "code" / {entry}), run_name="__main__")
except SystemExit as end:
    if end.code:
        raise"""
_GRADE = """\
name = {file}
written = [path for path in (work / name, work / "working" / name, work / "submission" / name) if path.is_file()]
report = mleredux.grade(written[0] if written else work / name, TASK)
print(report.metric, report.score, "medal:", report.medal, report.message or "")"""


def produce_notebook(run: Run) -> Artifact | None:
    """Write the notebook; return None if the run has no executable code."""
    files = final_code(run)
    try:
        entry = entry_of(files)
    except MlereduxError:
        return None
    names = {"task": repr(run.spec.task), "seed": repr(str(run.spec.seed)), "file": repr(_submission_file(run))}
    writes = [f"Path('code', {name!r})" for name in sorted(files) if "/" in name]
    folders = [f"{place}.parent.mkdir(parents=True, exist_ok=True)" for place in writes]
    cells = [_text(_about(run, entry)), _code("\n".join([_SET_UP.format(**names), *folders]))]
    for name in sorted(files, key=lambda name: (name == entry, name)):
        cells += [_text(f"## {name}"), _code(f"%%writefile code/{name}\n{files[name]}")]
    cells += [
        *(_text("## Run it"), _code(_RUN.format(entry=repr(entry)))),
        *(_text("## Grade it"), _code(_GRADE.format(**names))),
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    book = {
        "cells": [{"id": f"cell-{number}", **cell} for number, cell in enumerate(cells)],
        "metadata": {"kernelspec": kernel},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    text = json.dumps(book, indent=1, ensure_ascii=False) + "\n"
    write_atomically(run.path / PATH, text.encode("utf-8", "replace"))
    return Artifact(path=PATH, media_type="application/x-ipynb+json", producer="notes", title="Runnable notebook")


def _text(source: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": source}


def _code(source: str) -> dict[str, Any]:
    return {"cell_type": "code", "metadata": {}, "execution_count": None, "source": source, "outputs": []}


def _submission_file(run: Run) -> str:
    from mleredux.plugin.command import current

    try:
        return current().task(run.spec.task).submission.file
    except MlereduxError:
        return "submission.csv"


def _about(run: Run, entry: str) -> str:
    report = run.report
    graded = f"{report.metric} {report.score}, medal: {report.medal or 'none'}" if report else "not graded"
    return (
        f"# {run.spec.task} by {run.spec.agent}\n\nThe final code of run `{run.id}` ({graded}), unchanged; "
        f"`{entry}` creates the submission. It was written by an agent: read it before you run it.\n\n"
        "Requires `pip install mleredux` with the task's package, and the packages that the code imports."
    )
