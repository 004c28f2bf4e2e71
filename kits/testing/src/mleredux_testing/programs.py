"""Checks of tasks whose submission is a program."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

from mleredux._core.data import Prepared
from mleredux._core.submissions.schema import read_schema
from mleredux._core.submissions.validation import validate
from mleredux.errors import InvalidSubmission
from mleredux.models import Score, Task

from mleredux_testing.findings import Findings

SECRET = "inputs were read"
_SPY = f"""
import glob
found = "".join(open(name).read() for name in glob.glob("*inputs.csv"))
raise SystemExit("{SECRET}" + found)
"""


def check_programs(
    findings: Findings, task: Task, prepared: Prepared, grade: Callable[[Path], Score], folder: Path
) -> None:
    """Check that the sample submission works on the sample inputs and the private inputs, and that a program can't
    distinguish them.
    """
    schema = read_schema(prepared.schema)
    if task.submission.sample is None:
        findings.bad("sample", "a task that executes submissions has no sample submission.")
        return
    sample = prepared.public / task.submission.sample
    verdict = validate(schema, sample, task=task)
    findings.expect("sample is well-formed", verdict.valid, verdict.message)
    with findings.looking_at("sample can be graded"):
        grade(sample)
        findings.good("sample can be graded")
    spy = folder / task.submission.file
    if spy.suffix == ".zip":
        with zipfile.ZipFile(spy, "w") as archive:
            archive.writestr("main.py", _SPY)
    else:
        spy.write_text(_SPY, encoding="utf-8")
    with findings.looking_at("program that prints its inputs"):
        said = ""
        try:
            grade(spy)
        except InvalidSubmission as error:
            said = str(error)
        findings.expect(
            "program that prints its inputs",
            said and SECRET not in said,
            "grading reveals what a program prints, which may be the private inputs." if said else "it is scored.",
        )
