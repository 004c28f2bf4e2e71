"""The Python ways in: `mleredux.run("digits", agent="baseline")` and its neighbours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mleredux._core.data import DataStore, Prepared
from mleredux._core.models import Report, SubmissionSchema, Verdict
from mleredux._core.pipeline import Pipeline
from mleredux._core.plans import plan
from mleredux._core.plugins import current
from mleredux._core.sandboxes.slots import machine
from mleredux._core.store import Run, RunStore

BYTES_PER_GRADER = 64 * 2**20
"""How much one grading process takes on before a second one, which has to import the graders too, is worth it."""


def tasks(**wanted: Any) -> list[dict[str, Any]]:
    """All tasks as `mleredux list` shows them, filtered by equal fields (`category="Tabular"`)."""
    rows = [
        {"id": entry.id, "plugin": entry.plugin.name, **entry.ref.summary}
        for entry in current().entries("tasks").values()
    ]
    return [row for row in rows if all(row.get(key) == value for key, value in wanted.items())]


def run(
    task: str,
    agent: str = "baseline",
    *,
    sandbox: str | None = None,
    seed: int = 0,
    time_limit: float | None = None,
    limits: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    network: str | None = None,
    obfuscated: bool = False,
    context: str | None = None,
    base_image: str | None = None,
    runs_dir: Path | str | None = None,
    data_dir: Path | str | None = None,
    progress: Callable[[Run, str], None] = lambda _run, _message: None,
) -> Run:
    """Prepare the task, let the agent work on it, grade what it leaves, and keep everything.

    Args:
        task: Id of a task, a variant included: `digits`, `spaceship-titanic+fixed`.
        agent: Id of an agent.
        sandbox: Id of a sandbox; the best that meets the agent's needs where None.
        seed: Given to the agent.
        time_limit: Seconds the agent may work.
        limits: Further fields of `Limits` to change.
        options: Options of the agent to change.
        network: `none`, `gateway` or `open`; the agent's own where None.
        obfuscated: Whether the agent gets the description without the competition's name and story.
        context: Further text for the agent.
        base_image: Base of the image, where one is built.
        runs_dir: Where runs are kept; `default_runs_dir()` where None.
        data_dir: Where data are kept; `default_data_dir()` where None.
        progress: Told what is going on, in a few words.

    Returns:
        The finished run: `run.state`, `run.report`, `run.path`.

    Raises:
        NotFound: There is no such task, agent or sandbox.
        MlereduxError: What was asked can't be done here.
    """
    store, data = RunStore(runs_dir), DataStore(data_dir)
    asked = plan(
        current(),
        task,
        agent,
        sandbox=sandbox,
        seed=seed,
        limits={**(limits or {}), **({"time_limit": time_limit} if time_limit is not None else {})},
        options=options,
        network=network,
    )
    made = store.create(**asked, data_dir=str(data.path), obfuscated=obfuscated, context=context)
    pipeline = Pipeline(store, current(), data, base_image=base_image, progress=progress)
    return pipeline.execute([made])[0]


def prepare(task: str, *, data_dir: Path | str | None = None, force: bool = False) -> Prepared:
    """Prepare a task's files, unless they are there.

    Raises:
        NotFound: There is no such task.
        DataError: Raw data are missing or damaged.
    """
    from mleredux._core.stages.prepare import prepare as prepare_stage

    return prepare_stage(current().task(task), current(), DataStore(data_dir), force=force)


def grade(submission: Path | str, task: str, *, data_dir: Path | str | None = None) -> Report:
    """Grade a submission file, good or bad, against the answers.

    Raises:
        NotFound: There is no such task.
        DataError: The task is not prepared and can't be.
        TaskBroken: The task is at fault, not the submission.
    """
    from mleredux._core.stages.grade import grade as grade_stage
    from mleredux._core.submissions.files import submitted

    prepared, given = prepare(task, data_dir=data_dir), submitted(submission)
    return grade_stage(current().task(task), given, prepared.private, current(), shown_path=str(submission))


def grade_jsonl(
    listed: Path | str, *, output_dir: Path | str | None = None, data_dir: Path | str | None = None
) -> tuple[dict[str, Any], Path | None]:
    """Grade every line of MLE-bench's `submission.jsonl`.

    Args:
        listed: One JSON object a line with `competition_id` and `submission_path` (or null); empty lines and lines that
            start with `#` or `//` are passed over.
        output_dir: Where `<time>_grading_report.json` is written; nowhere where None.
        data_dir: Where data are kept.

    Returns:
        The aggregated report with MLE-bench's keys, and the path it was written to.

    Raises:
        MlereduxError: A line is malformed; the message says which.
    """
    from mleredux._core.stages.grade import Job, score_in_children
    from mleredux._core.stages.grade import grade as grade_stage
    from mleredux._core.stages.jsonl import aggregate, read_listed, write_report
    from mleredux._core.submissions.files import submitted

    lines = read_listed(Path(listed))
    private = {
        name: prepare(name, data_dir=data_dir).private for name in dict.fromkeys(line.competition_id for line in lines)
    }
    tasks = {name: current().task(name) for name in private}
    checked = [submitted(line.submission_path or "") for line in lines]
    jobs = [
        Job(tasks[line.competition_id], given, private[line.competition_id])
        for line, given in zip(lines, checked, strict=True)
        if isinstance(given, Path)
    ]
    size = sum(job.submission.stat().st_size for job in jobs)
    workers = min(int(machine().cpus) or 1, 1 + size // BYTES_PER_GRADER)
    scored = iter(score_in_children(jobs, current(), workers=workers))
    reports = [
        grade_stage(
            tasks[line.competition_id],
            given,
            private[line.competition_id],
            current(),
            shown_path=line.submission_path or "",
            scored=next(scored) if isinstance(given, Path) else None,
        )
        for line, given in zip(lines, checked, strict=True)
    ]
    total = aggregate(reports)
    return total, write_report(total, Path(output_dir)) if output_dir is not None else None


def validate(submission: Path | str, task: str, *, data_dir: Path | str | None = None) -> Verdict:
    """Whether a submission file is well-formed; the answers are not opened.

    Raises:
        NotFound: There is no such task.
        DataError: The task is not prepared and can't be.
    """
    from mleredux._core.submissions.schema import read_schema
    from mleredux._core.submissions.validation import validate as check

    schema: SubmissionSchema = read_schema(prepare(task, data_dir=data_dir).schema)
    return check(schema, Path(submission))
