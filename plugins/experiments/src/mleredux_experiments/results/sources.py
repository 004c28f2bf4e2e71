"""Sources of results: a runs folder, an experiment's folder, a server; reports are read by `grading_reports`."""

from __future__ import annotations

import os
import sys
import threading
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from mleredux.errors import NotFound
from mleredux.models import Event, Report, State
from mleredux.models.base import MAX_EVENT_MARKS, parse, read
from mleredux.models.events import StateEntered
from mleredux.models.formats import short_reference
from mleredux.plugin.artifact import SCORES_FILE, default_runs_dir
from mleredux.plugin.command import current
from pydantic import TypeAdapter

from mleredux_experiments.results.rollouts import content, read_rollout, with_rollout
from mleredux_experiments.results.table import MEDALS, UNTRUSTED, Facts, Left, Results, Row, Version

UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError)
"""Exceptions raised when a damaged run is read."""
_MANY = 2_000
"""The minimum number of runs for which starting a second process to read them is worthwhile."""
TECHNIQUE_USE = "technique_use.json"
"""The file in a run's directory that `mleredux runs techniques` writes."""
Stamps = tuple[tuple[Any, ...], ...]
"""Folders of runs, each with the size and time of its files."""
_STAMPED = ("events.jsonl", "report.json", "rollout.json", "run.json", SCORES_FILE, TECHNIQUE_USE)


def load(path: Path | str | None = None, *, experiment: str | None = None, rollouts: bool = False) -> Results:
    """Load the results of a folder that contains runs, an experiment, or MLE-bench grading reports.

    Args:
        path: The folder; None: the default folder for runs.
        experiment: The experiment whose runs are loaded; None: all runs.
        rollouts: Whether to also read the agents' own measurements, costs over time and failures, which takes longer.

    Raises:
        NotFound: The folder does not exist, or contains no results.
    """
    folder = Path(path) if path is not None else default_runs_dir()
    if not folder.is_dir():
        raise NotFound(f"There is no folder {folder}.", hint="Specify a folder of runs, reports or an experiment.")
    if (folder / "experiment.json").is_file():
        record = _object(folder / "experiment.json")
        experiment, folder = experiment or str(record["name"]), (folder / str(record.get("runs", "."))).resolve()
    results = runs_below(folder, rollouts=rollouts)
    if experiment is not None:
        results = results.keep(row for row in results.rows if row.experiment == experiment)
    elif not results.rows and next(folder.glob("*/*.json"), None):
        from mleredux_experiments.results.grading_reports import load_reports

        return load_reports(folder)
    return results.without_samples()


def runs_below(folder: Path, *, rollouts: bool = False) -> Results:
    """Load the results of all runs in a folder; none if the folder does not exist."""
    records = sorted(folder.glob("*/run.json"), key=str)
    return load_runs((record.parent for record in records), rollouts=rollouts)


def load_runs(folders: Iterable[Path], *, rollouts: bool = False) -> Results:
    """Load the results of runs from their directories; those that cannot be read are left out with a note."""
    own = list(folders)
    if len(own) > _MANY and threading.active_count() == 1 and hasattr(os, "fork"):
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        half = len(own) // 2  # reading is CPU-bound, so a second process halves the time
        with ProcessPoolExecutor(1, get_context("fork")) as other:
            rest = other.submit(_read_all, own[half:], rollouts)
            return _results([*_read_all(own[:half], rollouts), *rest.result()])
    return _results(_read_all(own, rollouts))


def _results(rows_read: Sequence[Row | Left]) -> Results:
    rows, left = [row for row in rows_read if isinstance(row, Row)], [row for row in rows_read if isinstance(row, Left)]
    return Results(tuple(_short_arms(rows)), task_facts(), left=tuple(left))


def load_stamped(stamps: Stamps, *, rollouts: bool = False) -> Results:
    """Load the results of runs with the stamps of their files; what was read is cached until a stamp changes."""
    return _results([_read_stamped(stamp, rollouts) for stamp in stamps])


def stamps_of(folders: Iterable[Path]) -> Stamps:
    """Return the folders of runs, each with stamps that change when the run does."""
    return tuple((folder, *(_stamp(folder / name) for name in _STAMPED)) for folder in sorted(folders))


def _stamp(path: Path) -> tuple[int, int] | None:
    with suppress(OSError):
        status = path.stat()
        return status.st_size, status.st_mtime_ns
    return None


@lru_cache(maxsize=5_000)
def _read_stamped(stamp: tuple[Any, ...], rollouts: bool) -> Row | Left:
    return _read(stamp[0], rollouts)


def _read_all(folders: Sequence[Path], rollouts: bool) -> list[Row | Left]:
    return [_read(folder, rollouts) for folder in folders]


def _read(folder: Path, rollouts: bool) -> Row | Left:
    """Return the row of a run, or a note with the reason why it is left out."""
    try:
        row = read_run(folder, rollouts)
        if row.run != folder.name:
            return Left(folder.name, "a copy of another run, or renamed", row)
        if row.verdict in UNTRUSTED and _is_oracle(folder):
            return Left(folder.name, f"which submitted the answers themselves ({row.agent})", row)
        return row
    except UNREADABLE as error:
        reason = error if type(error) is ValueError else type(error).__name__
        return Left(folder.name, f"which can't be read ({reason})")


def _short_arms(rows: list[Row]) -> Iterable[Row]:
    """Yield the rows, replacing references as arm names by short names, unless two references share a short name."""
    short = {arm: short_reference(arm) for arm in {row.arm for row in rows}}
    number = Counter(short.values())
    shorter = {arm: name for arm, name in short.items() if arm != name and number[name] == 1}
    return (replace(row, arm=shorter[row.arm]) if row.arm in shorter else row for row in rows)


def locate(argument: str, runs_dir: str | None = None) -> Path:
    """Return the folder of results for a folder, a plan file, or an experiment's name.

    Raises:
        NotFound: There are no such results.
    """
    from mleredux_experiments.execution.record import FOLDER, RECORD_FILE

    path, name = Path(argument), argument
    if path.is_dir():
        return path
    if path.is_file():
        try:
            name = str(tomllib.loads(path.read_text(encoding="utf-8"))["experiment"]["name"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            raise NotFound(f"{path} is not a plan.", hint="Specify a plan (TOML), or a folder of results.") from None
    store = Path(runs_dir) if runs_dir is not None else default_runs_dir()
    folder = store / FOLDER / name
    if not (folder / RECORD_FILE).is_file():
        raise NotFound(
            f"There is no experiment {name!r} in {store}.",
            hint="Start it with `mleredux experiment run PLAN`, or specify a folder of runs or reports.",
        )
    return folder


def _object(path: Path | str) -> dict[str, Any]:
    document = parse(content(str(path)))
    if not isinstance(document, dict):
        raise ValueError(f"{path} is not an object")
    return document


def _is_oracle(folder: Path) -> bool:
    """Return whether the run was made by a task's author, with an agent that has the answers."""
    verdict = _object(folder / "report.json").get("verdict") or {}
    return any(evidence.get("kind") == "oracle" for evidence in verdict.get("evidence") or ())


def read_run(folder: Path, rollouts: bool) -> Row:
    """Read a run directly from its files, since this function is called ten thousand times.

    Args:
        rollouts: Whether to also read the agent's own measurements, costs over time and failures.
    """
    place = f"{folder}{os.sep}"  # joining paths takes longer than reading the files
    record = _object(place + "run.json")
    ending = _ending(place + "events.jsonl")
    try:
        graded = read(Report, _object(place + "report.json"))
        report = graded.of_run(record["spec"]["id"], partial(content, place + "events.jsonl")).model_dump()
    except FileNotFoundError:
        if ending.status == "done":
            raise
        report = {}
    versions: tuple[Version, ...] = ()
    with suppress(FileNotFoundError):
        versions = tuple(
            Version(float(version["seconds"]), _number(version["score"]), bool(version["valid"]))
            for version in parse(content(place + SCORES_FILE))
        )
    trace = read_rollout(place + "rollout.json") if rollouts else None
    versions, validation = with_rollout(trace, versions)
    row = row_of(record["spec"], report, ending, record.get("use"))
    row = replace(row, versions=versions, validation=validation, findings=() if rollouts else None)
    with suppress(FileNotFoundError):
        row = replace(row, technique_use=_number(_object(place + TECHNIQUE_USE).get("reward")))
    return _with_findings(row, folder, ending, report, trace) if rollouts else row


def _with_findings(row: Row, folder: Path, ending: Ending, report: Mapping[str, Any], trace: Any) -> Row:
    from mleredux_experiments.failures.evidence import Evidence
    from mleredux_experiments.failures.rules import findings_in

    outcome, ledger = ending.outcome, report.get("ledger") or {}
    evidence = Evidence(
        row,
        folder,
        message=str(ending.message or report.get("message") or ""),
        **{name: outcome.get(name) for name in ("limit", "exit_code", "signal")},
        seconds=ending.seconds or 0.0,
        llm=ledger.get("llm") or ending.llm or {},
        trace=trace,
    )
    findings = findings_in(evidence)
    return replace(row, findings=findings) if findings else row


def row_of(
    spec: Mapping[str, Any], report: Mapping[str, Any], ending: Ending, use: Mapping[str, Any] | None = None
) -> Row:
    """Return a row from a run's specification and report, without versions and findings."""
    use, llm = use or {}, ending.llm or (report.get("ledger") or {}).get("llm") or {}
    limits = spec.get("limits") or {}
    verdict = str((report.get("verdict") or {}).get("status") or "not checked")
    medal = next((name for name in MEDALS if report.get(f"{name}_medal")), None)
    thresholds: dict[str, Any] = {name: _number(report.get(f"{name}_threshold")) for name in (*MEDALS, "median")}
    return Row(
        run=str(spec["id"]),
        arm=str(spec.get("arm") or spec["agent"]),
        agent=str(spec["agent"]),
        task=str(spec["task"]),
        seed=int(spec["seed"]),
        status=ending.status,
        cause=ending.cause,
        verdict=verdict,
        score=_number(report.get("score")) if verdict not in UNTRUSTED else None,
        lower_is_better=bool(report.get("is_lower_better")),
        **thresholds,
        submitted=bool(report.get("submission_exists")),
        valid=bool(report.get("valid_submission")),
        medal=medal if verdict not in UNTRUSTED else None,
        above_median=bool(report.get("above_median")) and verdict not in UNTRUSTED,
        percentile=_number(report.get("percentile")) if verdict not in UNTRUSTED else None,
        metric=report.get("metric"),
        cost_usd=_number(llm.get("cost_usd")),
        tokens=int(llm["prompt_tokens"]) + int(llm.get("completion_tokens") or 0) if "prompt_tokens" in llm else None,
        hours=None if ending.seconds is None else ending.seconds / 3600,
        paused_hours=(_number(ending.outcome.get("paused_seconds")) or 0.0) / 3600,
        time_limit=_number(limits.get("time_limit")),
        task_version=report.get("task_version") or use.get("task_version"),
        setup={
            "agent_version": use.get("agent_version"),
            "sandbox": spec.get("sandbox"),
            "network": spec.get("network"),
            "obfuscated": bool(spec.get("obfuscated")),
            "options": spec.get("options") or {},
            "tools": {name: _tool(name, str(digest), spec) for name, digest in (use.get("tools") or {}).items()},
            "limits": limits,
        },
        experiment=spec.get("experiment"),
    )


def _tool(name: str, digest: str, spec: Mapping[str, Any]) -> str:
    """Return the digest of a tool, unless the plan has one for each task (`{task}` in its path)."""
    tasks = {str(spec["task"]), str(spec["task"]).rpartition("+")[0]}
    paths = [Path(path) for path in (spec.get("grants") or {}).get("tools") or ()]
    return "by task" if any(path.name == name and path.parent.name in tasks for path in paths) else digest[:12]


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and abs(value) <= sys.float_info.max else None


class Ending(NamedTuple):
    """The last events that report the end of the run and the end of its agent."""

    status: str = "queued"
    cause: str | None = None
    message: str | None = None
    seconds: float | None = None
    outcome: Mapping[str, Any] = {}
    llm: Mapping[str, Any] | None = None


def _ending(path: str) -> Ending:
    """Read the end of a run from its event log, which is valid, incomplete or damaged as for `Run.log`.

    Raises:
        OSError: It is not a regular file, or too large.
        ValueError: A complete line is not an event.
    """
    try:
        lines = content(path).rpartition(b"\n")[0]
    except FileNotFoundError:
        return Ending()
    events = _EVENTS.validate_python(parse(b"[%s]" % lines.replace(b"\n", b","), MAX_EVENT_MARKS))[::-1]
    entered = (event.payload for event in events if event.type == "state")
    state = next((change for change in entered if isinstance(change, StateEntered)), StateEntered(state=State.QUEUED))
    stages = (event.data for event in events if event.type == "stage")
    running = next((data for data in stages if data.get("stage") == State.RUNNING), {})
    llm = next((event.data["use"] for event in events if event.type == "gateway" and event.data.get("use")), None)
    outcome = running.get("outcome") or {}
    seconds = _number(outcome.get("seconds")) or _number(running.get("seconds"))
    llm = llm if isinstance(llm, dict) else None
    return Ending(str(state.state), state.cause and str(state.cause), state.message, seconds, outcome, llm)


_EVENTS = TypeAdapter(list[Event])


def task_facts() -> dict[str, Facts]:
    """Return the facts that installed plugins declare about tasks, without importing the tasks."""
    return {
        name: Facts(*map(entry.ref.summary.get, ("complexity", "category", "metric")))
        for name, entry in current().entries("tasks").items()
    }


def from_records(records: Iterable[Mapping[str, Any]]) -> Results:
    """Return results from records as printed by `mleredux run --json`, for runs of a server."""
    rows = []
    for record in records:
        seconds = record.get("seconds") or seconds_between(record.get("started_at"), record.get("ended_at"))
        spec = {**(record.get("spec") or {}), **record}
        ending = Ending(str(record["status"]), record.get("cause"), None, seconds, record)
        rows.append(row_of(spec, record.get("report") or {}, ending))
    return Results(tuple(rows), task_facts()).without_samples()


def seconds_between(start: Any, end: Any) -> float | None:
    """Return the number of seconds between two ISO timestamps; None if one is missing."""
    with suppress(TypeError, ValueError):
        return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    return None
