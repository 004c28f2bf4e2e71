"""Fourth stage: submission + answers → report. Scoring happens in a child process without network, with limits."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import math
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from mleredux._core import forkserver
from mleredux._core.data.medals import medals, percentile, read_leaderboard
from mleredux._core.plugins import Catalogue
from mleredux._core.sandboxes.slots import machine
from mleredux._core.stages.prepare import as_prepared
from mleredux._core.store.files import FileLock
from mleredux._core.submissions.schema import refuse_malformed
from mleredux.errors import Cancelled, InvalidSubmission, SandboxError, TaskBroken
from mleredux.models import GradingInput, Ledger, Report, Score, Submitted, Task, Unusable

Scored = Score | InvalidSubmission | TaskBroken | SandboxError
GRADING_SECONDS = 3600.0
GRADING_MEMORY_MB = 16_384
_POLL_SECONDS = 0.25
_FOLDER, _LOCK, _FRESH_SECONDS = "mleredux-grade-", ".grading", 60.0
ONLINE = "The kernel does not permit network namespaces, so the grader could access this machine's network."


def grade_with_metric(task: Task, submission: Path, private: Path, catalogue: Catalogue) -> Score:
    """Score a submission with the grader of the task's metric: the built-in `mleredux_grade`.

    Raises:
        InvalidSubmission: The submission can't be scored.
        TaskBroken: The grader does not exist.
    """
    grader = task.metric.grader
    if isinstance(grader, str):
        grader = catalogue.grader(grader)
    if task.submission.execution is not None:
        return task.submission.execution.score(task, grader, submission, private)
    if grader.check is None:
        refuse_malformed(task, submission, private)
    score = grader.score(GradingInput(submission, private, task, task.metric.options))
    return score if isinstance(score, Score) else Score(value=float(score))


class Job(NamedTuple):
    """A submission to score, and the answers."""

    task: Task
    """The task of the submission."""
    submission: Path
    """The submitted file."""
    private: Path
    """The folder with the answers."""


def score_in_children(
    jobs: Sequence[Job], catalogue: Catalogue, *, workers: int = 1, notes: list[str] | None = None, **limits: Any
) -> list[Scored]:
    """Score submissions in several concurrent child processes, each of which scores its share one by one.

    An exception in the grader other than `InvalidSubmission` is attributed to the submission only if the task's own
    sample submission can be scored; otherwise the task is broken.

    Args:
        jobs: The submissions to score.
        catalogue: The plugins.
        workers: Maximum number of child processes.
        limits: The arguments `seconds`, `memory_mb` and `cancelled` of `score_in_child`.

    Returns:
        For each submission its score, or the reason why it has none; `TaskBroken` if the task's grader or answers are
            faulty, `SandboxError` if the environment of the grader failed.
    """
    order = [number for start in range(workers) for number in range(start, len(jobs), workers)]
    with ThreadPoolExecutor(workers) as pool:
        shares = pool.map(lambda start: _grade_all(jobs[start::workers], catalogue, **limits), range(workers))
        answers = dict(zip(order, itertools.chain(*shares), strict=True))
    if notes is not None and any(answer.get("offline") is False for answer in answers.values()):
        notes.append(ONLINE)
    samples: dict[str, Job] = {}
    for number, job in enumerate(jobs):
        sample = job.private.parent / "public" / (job.task.submission.sample or "")
        if "error" in answers[number] and sample.is_file() and not job.submission.samefile(sample):
            samples[job.task.id] = job._replace(submission=sample)
    controls = dict(zip(samples, _grade_all(list(samples.values()), catalogue, **limits), strict=True))
    return [_result(job, answers[number], controls.get(job.task.id)) for number, job in enumerate(jobs)]


def _result(job: Job, answer: dict[str, Any], control: dict[str, Any] | None) -> Scored:
    if "score" in answer:
        return Score.model_validate(answer["score"])
    if "invalid" in answer:
        return InvalidSubmission(answer["invalid"])
    if control is not None and "score" in control:
        return InvalidSubmission(f"The submission could not be scored: {answer['error']}.")
    failed = f"Grading {job.task.id} failed: {answer['error']}."
    fault = TaskBroken(failed, hint="The task's answers or grader are at fault.")
    return SandboxError(failed) if answer.get("passes") else fault


def _grade_all(jobs: Sequence[Job], catalogue: Catalogue, **limits: Any) -> list[dict[str, Any]]:
    """Start as many children as needed; a job that ended its child after other jobs had run there is repeated alone."""
    answers: list[dict[str, Any]] = []
    while len(answers) < len(jobs):
        batch = score_in_child(jobs[len(answers) :], catalogue, **limits)
        if len(batch) > 1 and batch[-1].get("felled"):
            batch.pop()
        answers += batch
    return answers


def score_in_child(
    jobs: Sequence[Job],
    catalogue: Catalogue,
    *,
    seconds: float = GRADING_SECONDS,
    memory_mb: int = GRADING_MEMORY_MB,
    cancelled: Callable[[], bool] = lambda: False,
) -> list[dict[str, Any]]:
    """Score submissions one by one in one child process.

    Args:
        jobs: The submissions to score.
        catalogue: The plugins.
        seconds: Time limit for scoring one submission.
        memory_mb: Memory limit of the child, in MiB.
        cancelled: Returns whether a user has cancelled the run.

    Returns:
        For each submission ``{"score": …}``, ``{"invalid": sentence}`` or ``{"error": end of a sentence}``. If the
            child dies or its memory runs out, this is the error of its current job, marked `felled`; later jobs are
            missing.

    Raises:
        Cancelled: A user cancelled the run.
    """
    with tempfile.TemporaryDirectory(prefix=_FOLDER) as folder, FileLock(Path(folder) / _LOCK):
        answers = [Path(folder) / f"answer-{number}.json" for number in range(len(jobs))]
        request = {
            "jobs": [(task.id, str(path.resolve()), str(private.resolve())) for task, path, private in jobs],
            "answers": [str(answer) for answer in answers],
            **forkserver.same_plugins(catalogue),
            "memory_mb": min(memory_mb, machine().memory_mb),
        }
        with (Path(folder) / "stderr").open("w+b") as errors:
            grading = "mleredux._core.submissions.children:grade"
            tables = any(forkserver.reads_tables(task) for task, _, _ in jobs)
            child = forkserver.start(grading, request, folder=folder, errors=errors.fileno(), tables=tables)
            with contextlib.closing(child):
                ended = _await(child, answers, seconds, cancelled)
            results = [json.loads(answer.read_bytes()) for answer in answers if answer.exists()]
            if len(results) < len(jobs) and not (results and results[-1].get("felled")):
                errors.seek(max(0, errors.seek(0, io.SEEK_END) - 2000))
                last = errors.read().decode(errors="replace").strip().splitlines()
                reason = ended or f"the grader's process ended with code {child.code}"
                results.append({"error": f"{reason}: {last[-1]}" if last else reason, "felled": ended is None})
            return results


def sweep_folders() -> None:
    """Remove temporary folders of gradings whose program was killed."""
    for lock in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*/{_LOCK}"):
        with contextlib.suppress(OSError):
            if time.time() - lock.stat().st_mtime > _FRESH_SECONDS and not FileLock(lock).held_elsewhere():
                shutil.rmtree(lock.parent, ignore_errors=True)


def _await(
    child: forkserver.Child, answers: Sequence[Path], seconds: float, cancelled: Callable[[], bool]
) -> str | None:
    """Wait for the child; return the reason if it was stopped."""
    done, since = 0, time.monotonic()
    while True:
        if child.wait(_POLL_SECONDS):
            return None
        while done < len(answers) and answers[done].exists():
            done, since = done + 1, time.monotonic()
        if time.monotonic() - since >= seconds:
            return f"scoring took longer than {seconds:.0f} seconds"
        if cancelled():
            raise Cancelled


def make_report(
    task: Task,
    score: float | None,
    *,
    path: str,
    exists: bool,
    message: str | None = None,
    details: dict[str, Any] | None = None,
    limit: str | None = None,
    ledger: Ledger | None = None,
) -> Report:
    """Return the report of a submission: the score rounded to five decimals, medals, median and percentile.

    Args:
        task: The task.
        score: The unrounded score; None if there is none.
        path: The submission's path, as shown in the report.
        exists: Whether a submission exists.
        message: Why there is no score, or no finite score.
    """
    if score is not None and message is None and not math.isfinite(score):
        message = f"The metric of this submission is {score}, which is not a finite number."
    # As in MLE-bench's reports, the rounded score is compared with the thresholds.
    rounded = None if score is None else _round(score, task)
    board = read_leaderboard(task.leaderboard) if task.leaderboard else []
    earned = asdict(medals(rounded, task.thresholds, task.direction)) if task.thresholds else {}
    thresholds = task.thresholds.model_dump() if task.thresholds else {}
    return Report(
        competition_id=task.id,
        score=rounded,
        **{f"{name}_threshold": value for name, value in thresholds.items()},
        **earned,
        any_medal=any(earned.get(f"{name}_medal") for name in ("gold", "silver", "bronze")),
        submission_exists=exists,
        valid_submission=score is not None,
        is_lower_better=task.direction == "minimize",
        created_at=datetime.now(UTC),
        submission_path=path,
        message=message,
        note=task.note,
        task_version=task.version,
        metric=task.metric.id,
        percentile=percentile(rounded, board, task.direction) if board else None,
        teams=len(board) or None,
        details=details or {},
        limit=limit,
        ledger=ledger,
    )


def _round(score: float, task: Task) -> float:
    """Round to five decimals as the task's published grader does; NaN and infinities are unchanged."""
    if not math.isfinite(score) or task.rounding == "decimal":
        return round(score, 5)
    scaled = score * 1e5
    # Every float of at least 2**52 is a whole number.
    return math.copysign(round(scaled), score) / 1e5 if abs(scaled) < 2**52 else scaled / 1e5


def grade(
    task: Task,
    submission: Submitted,
    private: Path,
    catalogue: Catalogue,
    *,
    shown_path: str | None = None,
    limit: str | None = None,
    ledger: Ledger | None = None,
    cancelled: Callable[[], bool] = lambda: False,
    scored: Scored | None = None,
) -> Report:
    """Grade a submission; one that can't be scored gets `valid_submission: false` and one sentence.

    Args:
        task: The task.
        submission: The file, or the problem that was found in its place.
        shown_path: The path to show in the report.
        scored: The result of `score_in_children`; None if the submission has yet to be scored.

    Raises:
        TaskBroken: The task is faulty, not the submission.
        SandboxError: The environment failed, perhaps only temporarily.
    """
    path = shown_path or (str(submission) if isinstance(submission, Path) else task.submission.file)
    task = as_prepared(task, private.parent)
    if clashes := catalogue.clashes():  # note in the result that another program may have been meant to grade it
        task = task.model_copy(update={"note": " ".join(filter(None, (task.note, *clashes)))})
    if not isinstance(submission, Path):
        message, exists = f"{path} {submission.problem}.", isinstance(submission, Unusable)
        return make_report(task, None, path=path, exists=exists, message=message, limit=limit, ledger=ledger)
    notes: list[str] = []
    if scored is None:
        [scored] = score_in_children([Job(task, submission, private)], catalogue, cancelled=cancelled, notes=notes)
    if isinstance(scored, (TaskBroken, SandboxError)):
        raise scored
    if ledger is not None and notes:
        ledger = ledger.model_copy(update={"notes": (*ledger.notes, *notes)})
    result: dict[str, Any]
    if isinstance(scored, InvalidSubmission):
        result = {"score": None, "message": str(scored)}
    else:
        result = {"score": scored.value, "details": scored.details}
    return make_report(task, **result, path=path, exists=True, limit=limit, ledger=ledger)
