"""Checks that every task must pass."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from mleredux._core.data import DataStore, Prepared
from mleredux._core.data.medals import medals
from mleredux._core.plugins import Catalogue, current
from mleredux._core.plugins.catalogue import set_current
from mleredux._core.stages.grade import grade as grade_stage
from mleredux._core.stages.grade import grade_with_metric
from mleredux._core.stages.prepare import prepare
from mleredux._core.submissions.schema import read_schema
from mleredux._core.submissions.validation import validate
from mleredux.errors import InvalidSubmission, MlereduxError
from mleredux.models import Grader, Score, SubmissionSchema, Task

from mleredux_testing.answers import answers_as_submission
from mleredux_testing.findings import Findings
from mleredux_testing.leaks import leaks
from mleredux_testing.malformed import Form, check_order, check_refusals

_PREPARE_AGAIN = """
import sys, mleredux
from mleredux._core.plugins.catalogue import Catalogue, set_current
set_current(Catalogue(load=sys.argv[3:]))
mleredux.prepare(sys.argv[1], data_dir=sys.argv[2])
"""


def check_task(
    task: Task | str, tmp: Path | None = None, *, raw: Path | None = None, catalogue: Catalogue | None = None
) -> Findings:
    """Check a task: its declaration, its texts, its preparation, its answers, and how it is graded.

    Args:
        task: The task, or its id.
        tmp: A folder for the data; None: a temporary folder.
        raw: A folder with the task's raw files, if it can't download them itself.
        catalogue: The plugins; None: those of this process.

    Raises:
        NotConforming: With all problems.
    """
    before = current()
    catalogue = catalogue or before
    findings = Findings(f"Task {task if isinstance(task, str) else task.id}")
    set_current(catalogue)  # child processes that check programs load the same plugins
    with (
        contextlib.ExitStack() as stack,
        tempfile.TemporaryDirectory(prefix="mleredux-check-") as folder,
        findings.looking_at("task"),
    ):
        stack.callback(set_current, before)
        checked = catalogue.task(task) if isinstance(task, str) else task
        _grader(checked, catalogue)  # without it, nothing else can be checked
        with findings.looking_at("declaration"):
            _check_declaration(findings, checked, catalogue)
        data = DataStore((tmp or Path(folder)) / "data")
        prepared = _check_preparation(findings, checked, catalogue, data, raw)
        if prepared is not None:
            _check_prepared(findings, checked, catalogue, prepared, Path(folder))
    return findings.close()


def _check_declaration(findings: Findings, task: Task, catalogue: Catalogue) -> None:
    findings.expect("title", task.title.strip(), "it has no title.")
    findings.expect("description", len(task.describe().split()) >= 10, "its description is almost empty.")
    findings.expect(
        "submission file",
        task.submission.file in task.describe(),
        f"its description never names {task.submission.file}.",
    )
    if task.description_obfuscated is None:
        findings.good("obfuscated description", "there is none")
    else:
        text = task.describe(obfuscated=True).lower()
        names = {task.id.lower(), task.id.lower().replace("-", " "), task.title.lower()}
        named = sorted(name for name in names if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text))
        findings.expect("obfuscated description", not named, f"it names the task: {', '.join(named)}.")
    grader = _grader(task, catalogue)
    findings.expect(
        "direction",
        task.direction == grader.direction,
        f"the task declares {task.direction}, its grader {grader.id} {grader.direction}.",
    )
    if thresholds := task.thresholds:
        steps = [thresholds.gold, thresholds.silver, thresholds.bronze]
        ordered = sorted(steps, reverse=task.direction == "maximize") == steps
        findings.expect(
            "thresholds", ordered, f"gold, silver and bronze are {steps}, which contradicts {task.direction}."
        )
    if task.leaderboard is not None:
        from mleredux._core.data.medals import read_leaderboard

        board = read_leaderboard(task.leaderboard)
        ordered = sorted(board, reverse=task.direction == "maximize") == list(board)
        findings.expect("leaderboard", board and ordered, "it is empty, or not sorted from best to worst.")


def _grader(task: Task, catalogue: Catalogue) -> Grader:
    grader = task.metric.grader
    return catalogue.grader(grader) if isinstance(grader, str) else grader


def _check_preparation(
    findings: Findings, task: Task, catalogue: Catalogue, data: DataStore, raw: Path | None
) -> Prepared | None:
    """Prepare the task twice and compare; if it is registered, with another hash seed in another process."""
    if task.fetch is None and raw is None:
        findings.good("preparation", "not checked: the raw files are missing; pass their folder as `raw`")
        return None
    again = DataStore(data.path.with_name("again"))
    registered = task.id.partition("+")[0] in catalogue.entries("tasks")
    try:
        for store in (data, again):
            if raw is not None:
                store.raw(task).parent.mkdir(parents=True, exist_ok=True)
                shutil.copytree(raw, store.raw(task), dirs_exist_ok=True)
        prepared = prepare(task, catalogue, data)
        if registered:
            _prepare_in_process(task, catalogue, again)
        else:
            prepare(task, catalogue, again)
    except MlereduxError as error:
        findings.bad("preparation", str(error))
        return None
    except subprocess.CalledProcessError as error:
        findings.bad("preparation", f"preparing in another process fails: {error.stderr.strip()[-500:]}")
        return None
    findings.good("preparation")
    first, second = (hashes(store.home(task) / "prepared") for store in (data, again))
    expect_same(findings, "same bytes each time", first, second)
    shutil.rmtree(again.path, ignore_errors=True)
    return prepared


def _prepare_in_process(task: Task, catalogue: Catalogue, data: DataStore) -> None:
    subprocess.run(
        [sys.executable, "-c", _PREPARE_AGAIN, task.id, str(data.path), *catalogue.load],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": "77"},
    )


def hashes(prepared: Path) -> dict[str, str]:
    """Return the SHA-256 of each public and private file, by its path under the folder."""
    digests = {}
    for part in ("public", "private"):
        for path in sorted((prepared / part).rglob("*")):
            if path.is_file():
                with path.open("rb") as file:
                    digests[str(path.relative_to(prepared))] = hashlib.file_digest(file, "sha256").hexdigest()
    return digests


def expect_same(findings: Findings, name: str, first: dict[str, str], second: dict[str, str]) -> None:
    """Record whether preparing twice gave the same `hashes`."""
    differing = sorted(path for path in first.keys() | second.keys() if first.get(path) != second.get(path))
    findings.expect(
        name,
        not differing,
        f"preparing twice results in different bytes: {', '.join(differing[:8])}.",
        "Seed every random choice, and sort everything whose order is undefined.",
    )


def expect_private(findings: Findings, name: str, digests: dict[str, str]) -> None:
    """Record whether no public file with these `hashes` is a copy of a private file."""
    private = {value: path for path, value in digests.items() if path.startswith("private/")}
    shown = [
        f"{path} is {private[value]}"
        for path, value in digests.items()
        if path.startswith("public/") and value in private
    ]
    findings.expect(name, not shown, f"public files are copies of private ones: {', '.join(shown)}.")


def _check_prepared(findings: Findings, task: Task, catalogue: Catalogue, prepared: Prepared, folder: Path) -> None:
    def grade(path: Path) -> Score:
        score: Score | None = catalogue.hook("mleredux_grade")(task=task, submission=path, private=prepared.private)
        return score if score is not None else grade_with_metric(task, path, prepared.private, catalogue)

    findings.expect(
        "answers", (prepared.private / task.answers).exists(), f"prepare writes no {task.answers} to private."
    )
    expect_private(findings, "private files", hashes(prepared.public.parent))
    if task.submission.execution is not None:
        check_programs(findings, task, prepared, grade, folder)
        return
    schema = read_schema(prepared.schema)
    if task.submission.sample is None or not schema.columns:
        findings.good("submission", "not checked: the sample submission is missing, or is not a table")
        return
    sample = prepared.public / task.submission.sample
    with findings.looking_at("answers in public files"):
        leaked = list(leaks(task, prepared.public, prepared.private / task.answers, schema))
        for leak in leaked:
            findings.bad("answers in public files", leak, "Leave the test rows' targets out of every public file.")
        if not leaked:
            findings.good("answers in public files")
    _check_sample(findings, task, schema, sample, grade)
    best = answers_as_submission(task, prepared, folder / "best.csv")
    with findings.looking_at("answers as submission"):
        _check_perfect(findings, task, _grader(task, catalogue), best, grade)
    form = form_of(schema, ids_fixed=task.submission.ids_fixed)
    check_order(findings, best or sample, form, grade, folder)
    check_refusals(findings, sample, form, grade, folder)
    if task.id.partition("+")[0] in catalogue.entries("tasks"):
        with findings.looking_at("graded in a child process"):
            report = grade_stage(task, best or sample, prepared.private, catalogue)
            findings.expect("graded in a child process", report.valid_submission, report.message or "")


def _check_sample(
    findings: Findings, task: Task, schema: SubmissionSchema, sample: Path, grade: Callable[[Path], Score]
) -> None:
    verdict = validate(schema, sample, task=task)
    findings.expect("sample is well-formed", verdict.valid, verdict.message)
    with findings.looking_at("sample can be graded"):
        grade(sample)
        findings.good("sample can be graded")


def form_of(schema: SubmissionSchema, *, ids_fixed: bool) -> Form:
    """Return the known properties of a submission from its schema."""
    targets = [column for column in schema.columns if column.role == "target"]
    return Form(
        ids=tuple(column.name for column in schema.columns if column.role == "id"),
        targets=tuple(column.name for column in targets),
        numbers=tuple(
            column.name for column in targets if column.type in ("number", "integer") and not column.nullable
        ),
        ids_fixed=ids_fixed,
    )


def _check_perfect(findings: Findings, task: Task, grader: Grader, best: Path | None, grade: object) -> None:
    name = "answers as submission"
    if best is None or not callable(grade):
        findings.good(name, "not checked: the answers do not have the form of a submission")
        return
    value = float(grade(best).value)
    gold = task.thresholds is not None and medals(round(value, 5), task.thresholds, task.direction).gold_medal
    perfect = grader.perfect is not None and abs(value - grader.perfect) <= 1e-9
    unknown = grader.perfect is None and task.thresholds is None
    findings.expect(
        name,
        gold or perfect or unknown,
        f"the answers themselves score {value}, which is neither perfect ({grader.perfect}) nor gold.",
        "Check the answers, the metric's options and the direction.",
    )


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
    _check_sample(findings, task, schema, sample, grade)
    spy = folder / task.submission.file
    if spy.suffix == ".zip":
        with zipfile.ZipFile(spy, "w") as archive:
            archive.writestr("main.py", _SPY)
    else:
        spy.write_text(_SPY, encoding="utf-8")
    with findings.looking_at("program that prints its inputs"):
        message = ""
        try:
            grade(spy)
        except InvalidSubmission as error:
            message = str(error)
        findings.expect(
            "program that prints its inputs",
            message and SECRET not in message,
            "grading reveals a program's output, which may contain private inputs." if message else "it is scored.",
        )
