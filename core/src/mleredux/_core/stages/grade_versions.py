"""The score over time: every version of a run's submission is graded after the agent has ended, so that it never sees a
score."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mleredux._core.plugins import Catalogue
from mleredux._core.stages.grade import Job, make_report, score_in_child
from mleredux._core.stages.prepare import as_prepared
from mleredux._core.store import SubmissionVersion
from mleredux._core.submissions.intake import hash_regular
from mleredux.models import Report, Task, VersionScore

BATCH = 16
MOST_SECONDS = 1800.0
"""Time limit for all versions together. Versions are graded evenly over time, so that a curve that is cut short is
coarse but complete."""


def grade_versions(
    task: Task,
    versions: Sequence[SubmissionVersion],
    private: Path,
    catalogue: Catalogue,
    *,
    started_at: float,
    graded: Mapping[Path, Report] | None = None,
    seconds: float = MOST_SECONDS,
    cancelled: Callable[[], bool] = lambda: False,
) -> list[VersionScore]:
    """Grade versions of a submission; identical files are graded once.

    Args:
        task: The task.
        versions: The versions, in any order.
        started_at: When the agent started, in Unix time.
        graded: Reports of versions that are already graded, by path.
        seconds: Time limit for all versions; the remaining ones are not graded, and their result states this.

    Returns:
        The score of each version, sorted by number.

    Raises:
        Cancelled: A user cancelled the run.
    """
    task = as_prepared(task, private.parent)
    ordered = sorted(versions, key=lambda version: version.number)
    digests = {version.number: hash_regular(version.path) for version in ordered}
    results = {hash_regular(path): _answer_of(report) for path, report in (graded or {}).items()}
    wanted: dict[str, Path] = {}
    for version in spread(ordered):
        if digests[version.number] not in results:
            wanted.setdefault(digests[version.number], version.path)
    until = time.monotonic() + seconds
    while wanted and (left := until - time.monotonic()) > 0:
        batch = list(wanted.items())[:BATCH]
        jobs = [Job(task, path, private) for _, path in batch]
        answers = score_in_child(jobs, catalogue, seconds=left, cancelled=cancelled)
        for (digest, _), answer in zip(batch, answers, strict=False):
            results[digest] = answer
            del wanted[digest]
    return [_scored(task, version, results.get(digests[version.number]), started_at) for version in ordered]


def spread(versions: Sequence[SubmissionVersion]) -> list[SubmissionVersion]:
    """Return the last version, the first, then repeatedly the middle of the largest gap, so that any prefix is evenly
    spread.
    """
    if len(versions) < 3:
        return list(reversed(versions))
    chosen = [len(versions) - 1, 0]
    gaps = [(0, len(versions) - 1)]
    while gaps:
        low, high = gaps.pop(0)
        if high - low > 1:
            middle = (low + high) // 2
            chosen.append(middle)
            gaps += [(low, middle), (middle, high)]
    return [versions[position] for position in chosen]


def _answer_of(report: Report) -> dict[str, Any]:
    return {"score": {"value": report.score}} if report.valid_submission else {"invalid": report.message}


def _scored(task: Task, version: SubmissionVersion, answer: dict[str, Any] | None, started_at: float) -> VersionScore:
    score, message = None, None
    if answer is None:
        message = "Not graded: grading the earlier versions took too long."
    elif "score" in answer:
        score = answer["score"]["value"]
    else:
        message = answer.get("invalid") or f"The submission could not be scored: {answer['error']}."
    report = make_report(task, score, path=version.path.name, exists=True, message=message)
    return VersionScore(
        number=version.number,
        time=version.time,
        seconds=round(max(0.0, version.time.timestamp() - started_at), 3),
        size=version.size,
        score=report.score,
        valid=report.valid_submission,
        medal=report.medal,
        message=report.message,
    )
