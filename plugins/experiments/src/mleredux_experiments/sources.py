"""Where results come from: a runs folder, an experiment's folder, a server, MLE-bench's grading reports."""

from __future__ import annotations

import json
import math
import os
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple

from mleredux.errors import MlereduxError, NotFound
from mleredux.plugin.artifact import SCORES_FILE, default_runs_dir, short_reference
from mleredux.plugin.command import Catalogue, current
from pydantic_core import from_json

from mleredux_experiments.failures import Finding
from mleredux_experiments.results import MEDALS, UNTRUSTED, Facts, Results, Row, Version

SPLITS = ("low", "medium", "high")
PUBLISHED_FOLDER = Path(__file__).parent / "published"
"""Published results that come with this package; its README names the sources."""
UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError)
"""What reading a damaged run raises."""
_MANY_BYTES = 64 << 20
TECHNIQUE_USE = "technique_use.json"
"""What `mleredux runs techniques` keeps in a run."""


def load(path: Path | str | None = None, *, experiment: str | None = None, rollouts: bool = False) -> Results:
    """The results of a folder: runs, an experiment's, or MLE-bench's reports, whichever it holds.

    Args:
        path: None: the default folder for runs.
        experiment: Only the runs of this experiment.
        rollouts: Read the agents' own measurements, costs over time and failures too, which takes longer.

    Raises:
        NotFound: There is no such folder, or it has no results.
    """
    folder = Path(path) if path is not None else default_runs_dir()
    if not folder.is_dir():
        raise NotFound(f"There is no folder {folder}.", hint="Give a folder of runs, an experiment's, or of reports.")
    if (folder / "experiment.json").is_file():
        told = _object(folder / "experiment.json")
        experiment, folder = experiment or str(told["name"]), (folder / str(told.get("runs", "."))).resolve()
    found = runs_below(folder, rollouts=rollouts)
    if experiment is not None:
        found = found.keep(row for row in found.rows if row.experiment == experiment)
    elif not found.rows and next(folder.glob("*/*.json"), None):
        return load_reports(folder)
    return found.without_samples()


def runs_below(folder: Path, *, rollouts: bool = False) -> Results:
    """The results of all runs of a folder; none if there is no such folder."""
    records = sorted(folder.glob("*/run.json"), key=str)
    return load_runs((record.parent for record in records), rollouts=rollouts)


def load_runs(folders: Iterable[Path], *, rollouts: bool = False) -> Results:
    """The results of some runs, by their directories; those that can't be read are left out with a note."""
    rows, notes = [], []
    for folder in folders:
        try:
            row = read_run(folder, rollouts)
            if row.verdict in UNTRUSTED and _is_oracle(folder):
                notes.append(f"{folder.name} submitted the answers themselves ({row.agent}) and is left out.")
                continue
            rows.append(row)
        except UNREADABLE as error:
            notes.append(f"{folder.name} can't be read ({type(error).__name__}) and is left out.")
    return Results(tuple(_short_arms(rows)), task_facts(), notes=tuple(notes))


def _short_arms(rows: list[Row]) -> Iterable[Row]:
    """The rows, with arms that are references by their short names, unless two references have the same."""
    short = {arm: short_reference(arm) for arm in {row.arm for row in rows}}
    number = Counter(short.values())
    return (replace(row, arm=short[row.arm]) if number[short[row.arm]] == 1 else row for row in rows)


def locate(argument: str, runs_dir: str | None = None) -> Path:
    """The folder of results that a user names: a folder, a plan's file, or an experiment's name.

    Raises:
        NotFound: There is none.
    """
    from mleredux_experiments.record import FOLDER, RECORD_FILE

    path, name = Path(argument), argument
    if path.is_dir():
        return path
    if path.is_file():
        try:
            name = str(tomllib.loads(path.read_text(encoding="utf-8"))["experiment"]["name"])
        except (OSError, ValueError, KeyError, TypeError):
            raise NotFound(f"{path} is not a plan.", hint="Give a plan (TOML), or a folder of results.") from None
    store = Path(runs_dir) if runs_dir is not None else default_runs_dir()
    folder = store / FOLDER / name
    if not (folder / RECORD_FILE).is_file():
        raise NotFound(
            f"There is no experiment {name!r} in {store}.",
            hint="Start it with `mleredux experiment run PLAN`, or give a folder of runs or reports.",
        )
    return folder


def _object(path: Path | str) -> dict[str, Any]:
    content = from_json(_content(path))
    if not isinstance(content, dict):
        raise ValueError(f"{path} is not an object")
    return content


def _content(path: Path | str) -> bytes:
    with FileIO(str(path)) as file:
        return file.readall()


def _is_oracle(folder: Path) -> bool:
    """Whether a run is an author's, whose agent was given the answers."""
    verdict = _object(folder / "report.json").get("verdict") or {}
    return any(one.get("kind") == "oracle" for one in verdict.get("evidence") or ())


def read_run(folder: Path, rollouts: bool) -> Row:
    """One run, from its files as they are: this is read ten thousand times.

    Args:
        rollouts: Read the agent's own measurements, costs over time and failures too.
    """
    place = f"{folder}{os.sep}"  # joining paths takes longer than reading the files
    record = _object(place + "run.json")
    happened = _happened(place + "events.jsonl")
    try:
        report = _object(place + "report.json")
    except FileNotFoundError:
        report = {}
    versions: tuple[Version, ...] = ()
    if report:
        try:
            versions = tuple(
                Version(float(one["seconds"]), _number(one["score"]), bool(one["valid"]))
                for one in from_json(_content(place + SCORES_FILE))
            )
        except FileNotFoundError:
            versions = ()
    trace = validation = None
    if rollouts:
        from mleredux_experiments.rollouts import read_rollout, with_rollout

        trace = read_rollout(place + "rollout.json")
        versions, validation = with_rollout(trace, versions)
    row = row_of(
        record["spec"],
        report,
        status=happened.status,
        cause=happened.cause,
        seconds=happened.seconds,
        llm=happened.llm,
        versions=versions,
        validation=validation,
        use=record.get("use") or {},
        findings=() if rollouts else None,
    )
    with suppress(FileNotFoundError):
        row = replace(row, technique_use=_number(_object(place + TECHNIQUE_USE).get("reward")))
    return _with_findings(row, folder, happened, report, trace) if rollouts else row


def _with_findings(row: Row, folder: Path, happened: _Happened, report: Mapping[str, Any], trace: Any) -> Row:
    from mleredux_experiments.failures.evidence import Evidence
    from mleredux_experiments.failures.rules import findings_in

    outcome, ledger = happened.outcome, report.get("ledger") or {}
    evidence = Evidence(
        row,
        folder,
        message=str(happened.message or report.get("message") or ""),
        limit=outcome.get("limit"),
        exit_code=outcome.get("exit_code"),
        seconds=happened.seconds or 0.0,
        llm=ledger.get("llm") or happened.llm or {},
        trace=trace,
    )
    found = findings_in(evidence)
    return replace(row, findings=found) if found else row


def row_of(
    spec: Mapping[str, Any],
    report: Mapping[str, Any],
    *,
    status: str,
    cause: str | None,
    seconds: float | None = None,
    llm: Mapping[str, Any] | None = None,
    versions: tuple[Version, ...] = (),
    validation: float | None = None,
    use: Mapping[str, Any] | None = None,
    findings: tuple[Finding, ...] | None = None,
) -> Row:
    """A row from a run's specification and report."""
    use, llm = use or {}, llm or (report.get("ledger") or {}).get("llm") or {}
    limits = spec.get("limits") or {}
    verdict = str((report.get("verdict") or {}).get("status") or "not checked")
    medal = next((name for name in MEDALS if report.get(f"{name}_medal")), None)
    return Row(
        run=str(spec["id"]),
        arm=str(spec.get("arm") or spec["agent"]),
        agent=str(spec["agent"]),
        task=str(spec["task"]),
        seed=int(spec["seed"]),
        status=status,
        cause=cause,
        verdict=verdict,
        score=_number(report.get("score")) if verdict not in UNTRUSTED else None,
        lower_is_better=bool(report.get("is_lower_better")),
        gold=_number(report.get("gold_threshold")),
        silver=_number(report.get("silver_threshold")),
        bronze=_number(report.get("bronze_threshold")),
        median=_number(report.get("median_threshold")),
        made=bool(report.get("submission_exists")),
        valid=bool(report.get("valid_submission")),
        medal=medal if verdict not in UNTRUSTED else None,
        above_median=bool(report.get("above_median")) and verdict not in UNTRUSTED,
        percentile=_number(report.get("percentile")) if verdict not in UNTRUSTED else None,
        metric=report.get("metric"),
        cost_usd=_number(llm.get("cost_usd")),
        tokens=int(llm["prompt_tokens"]) + int(llm.get("completion_tokens") or 0) if "prompt_tokens" in llm else None,
        hours=None if seconds is None else seconds / 3600,
        time_limit=_number(limits.get("time_limit")),
        validation=validation,
        versions=versions,
        task_version=report.get("task_version") or use.get("task_version"),
        setup={
            "agent_version": use.get("agent_version"),
            "sandbox": spec.get("sandbox"),
            "network": spec.get("network"),
            "obfuscated": bool(spec.get("obfuscated")),
            "options": spec.get("options") or {},
            "limits": limits,
        },
        experiment=spec.get("experiment"),
        findings=findings,
    )


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


class _Happened(NamedTuple):
    """The last event of each type: the end of the run and of its agent."""

    status: str = "queued"
    cause: str | None = None
    message: str | None = None
    seconds: float | None = None
    outcome: Mapping[str, Any] = {}
    llm: Mapping[str, Any] | None = None


def _happened(path: str) -> _Happened:
    try:
        events = _content(path)
    except FileNotFoundError:
        return _Happened()
    state, running, used = (_last_event(events, mark) for mark in _MARKS)
    outcome, llm = running.get("outcome") or {}, used.get("use")
    seconds = _number(outcome.get("seconds")) or _number(running.get("seconds"))
    status = str(state.get("state", "queued"))
    llm = llm if isinstance(llm, dict) else None
    return _Happened(status, state.get("cause"), state.get("message"), seconds, outcome, llm)


def _last_event(events: bytes, mark: bytes) -> dict[str, Any]:
    """The data of the last line that has the mark near its start; empty if there is none."""
    at = events.rfind(mark)
    while at >= 0:
        start = events.rfind(b"\n", 0, at) + 1
        if at - start < 160:
            end = events.find(b"\n", at)
            data: dict[str, Any] = from_json(events[start : end if end > 0 else None])["data"] or {}
            return data
        at = events.rfind(mark, 0, start)
    return {}


_MARKS = (b'"type":"state"', b'"data":{"stage":"running"', b'"type":"gateway"')


def task_facts(catalogue: Catalogue | None = None) -> dict[str, Facts]:
    """What the installed plugins declare of tasks; none of them is imported."""
    entries = (catalogue or current()).entries("tasks")
    told = {name: entry.ref.summary for name, entry in entries.items()}
    return {
        name: Facts(facts.get("complexity"), facts.get("category"), facts.get("metric")) for name, facts in told.items()
    }


def benchmark() -> dict[str, list[str]]:
    """MLE-bench's tasks by split; empty if `mleredux-competition-mlebench` is not installed."""
    splits: dict[str, list[str]] = {}
    for name, entry in current().entries("tasks").items():
        facts = entry.ref.summary
        if "split75" in facts.get("sets", ()) and facts.get("complexity") in SPLITS:
            splits.setdefault(str(facts["complexity"]), []).append(name)
    return splits


def load_reports(folder: Path) -> Results:
    """Published results: one folder a row, in it one grading report of MLE-bench a run (`*.json`).

    A report names a row's runs of all its tasks; tasks that a report lacks count as failures. Files of other forms are
    left out with a note.

    Raises:
        NotFound: The folder has no such reports.
    """
    if not folder.is_dir():
        raise NotFound(f"There is no folder {folder}.", hint="Give a folder with one folder a row.")
    rows, notes = [], []
    for place in sorted(path for path in folder.iterdir() if path.is_dir()):
        number = 0
        for path in sorted(place.glob("*.json")):
            try:
                found = read_report(path)
            except MlereduxError as error:
                notes.append(f"{error.message} It is left out.")
                continue
            rows += [_published(one, place.name, f"{place.name}/{path.stem}", number) for one in found]
            number += 1
    if not rows:
        told = f" {notes[0]}" if notes else ""
        raise NotFound(
            f"{folder} has no grading reports.{told}",
            hint="It needs one folder a row, in it one report a run (*.json).",
        )
    return Results(tuple(rows), task_facts(), benchmark(), tuple(notes), by_report=True)


def read_report(path: Path) -> list[dict[str, Any]]:
    """The competition reports of one grading report of MLE-bench.

    Raises:
        MlereduxError: It is no such report, or lists a competition twice.
    """
    try:
        if path.stat().st_size > _MANY_BYTES:
            raise ValueError("too large")
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise MlereduxError(f"{path} can't be read as JSON ({type(error).__name__}).") from error
    listed = content.get("competition_reports") if isinstance(content, dict) else None
    if not isinstance(listed, list) or not all(_is_report(one) for one in listed):
        raise MlereduxError(
            f"{path} is not a grading report of MLE-bench.",
            hint="It must be an object with `competition_reports`, each with `competition_id` and the medals.",
        )
    names = [one["competition_id"] for one in listed]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise MlereduxError(
            f"{path} lists {twice[0]} more than once.", hint="A report is one run: split it into one file a run."
        )
    return listed


def _is_report(one: Any) -> bool:
    if not isinstance(one, dict) or not isinstance(one.get("competition_id"), str):
        return False
    if not all(isinstance(one.get(name), bool) for name in ("any_medal", "gold_medal", "silver_medal", "bronze_medal")):
        return False
    numbers = [one.get(name) for name in ("score", *(f"{name}_threshold" for name in (*MEDALS, "median")))]
    return all(value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in numbers)


def _published(one: Mapping[str, Any], arm: str, run: str, number: int) -> Row:
    spec = {"id": f"{run}/{one['competition_id']}", "task": one["competition_id"], "agent": arm, "seed": number}
    return row_of(spec, one, status="done", cause=None)


def from_records(records: Iterable[Mapping[str, Any]]) -> Results:
    """Results from records as `mleredux run --json` prints them, for runs of a server."""
    rows = []
    for record in records:
        seconds = _seconds(record.get("started_at"), record.get("ended_at"))
        spec = {**(record.get("spec") or {}), **record}
        rows.append(
            row_of(
                spec,
                record.get("report") or {},
                status=str(record["status"]),
                cause=record.get("cause"),
                seconds=seconds,
            )
        )
    return Results(tuple(rows), task_facts()).without_samples()


def _seconds(start: Any, end: Any) -> float | None:
    try:
        return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    except (TypeError, ValueError):
        return None
