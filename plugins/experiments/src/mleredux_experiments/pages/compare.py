"""The page that compares arms: of an experiment, or of runs that were selected."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from mleredux.errors import MlereduxError
from mleredux.plugin.experiment import Plan
from mleredux.plugin.page import StoredExperiment, Visit

from mleredux_experiments.analysis import Analysis
from mleredux_experiments.figures import pictures
from mleredux_experiments.record import FOLDER, RECORD_FILE, Record, digest_of, open_record
from mleredux_experiments.results import Results, Row
from mleredux_experiments.tables import analysis_tables, cell

MOST_RUNS = 5_000
_STAMPED = ("events.jsonl", "report.json", "rollout.json")
_KEPT = 8
_lock = threading.Lock()
Stamps = tuple[tuple[Any, ...], ...]


class Shown(NamedTuple):
    """A picture of the analysis as the address of an image: styles in it are not styles of the page."""

    question: str
    answer: str
    source: str


_drawn: dict[int, tuple[Analysis, list[Shown]]] = {}


@dataclass(frozen=True)
class Pair:
    """Runs of one task and seed, one of each arm or None, and whether their medals differ."""

    task: str
    seed: int
    runs: tuple[Row | None, ...]
    flipped: bool


def compare(visit: Visit) -> dict[str, Any]:
    """Compare the arms of the runs that the address names: by `run`, `experiment`, `task` and `arm`."""
    wanted = {name: given for name in ("experiment", "task", "agent", "arm") if (given := visit.query.get(name))}
    chosen = visit.query.get("run")
    if chosen:
        record, paths = None, [visit.open(run).path for run in chosen]
    else:
        record = record_of(visit, visit.text("experiment")) if "experiment" in wanted else None
        paths = readable(visit, visit.rows(MOST_RUNS, "", **wanted))
    found = analysis_of(paths, record)
    return {**shown(found), "experiment": record.name if record else None, "pairs": list(pairs(found)), "cell": cell}


def shown(found: Analysis) -> dict[str, Any]:
    """The values of `analysis.html.j2`."""
    notes = [*found.changes, *found.notes, *(note for one in found.comparisons for note in one.notes)]
    return {
        "analysis": found,
        "notes": list(dict.fromkeys(notes)),
        "pictures": _pictures(found),
        "tables": analysis_tables(found),
        "cell": cell,
    }


def pairs(found: Analysis) -> Iterator[Pair]:
    """The runs by task and seed."""
    arms = [one.name for one in found.arms]
    cells: dict[tuple[str, int], dict[str, Row]] = {}
    for row in found.results.rows:
        cells.setdefault((row.task, row.seed), {}).setdefault(row.arm, row)
    for (task, seed), by_arm in sorted(cells.items()):
        runs = tuple(by_arm.get(arm) for arm in arms)
        medals = {bool(run.medal) for run in runs if run is not None and run.counts}
        yield Pair(task, seed, runs, len(medals) > 1)


def readable(visit: Visit, rows: Iterable[Mapping[str, Any]]) -> list[Path]:
    """The directories of runs; those that can't be read yet are left out."""
    paths = []
    for row in rows:
        with suppress(MlereduxError):
            paths.append(visit.open(row["id"]).path)
    return paths


def record_of(visit: Visit, name: str) -> Record | None:
    """The record of an experiment of the directory of runs, or of the server; None if there is none of this name."""
    if visit.folder is None:
        return next((record_from(one) for one in visit.experiments(name)), None)
    if Path(name).name != name:
        return None
    folder = visit.folder / FOLDER / name
    return open_record(folder) if (folder / RECORD_FILE).is_file() else None


def record_from(stored: StoredExperiment) -> Record:
    """The record of an experiment that a server stores."""
    return Record.model_validate(
        {
            "name": stored.id, "plan": stored.plan, "digest": digest_of(stored.plan), "file_digest": "", "data_dir": "",
            "created_at": stored.created_at, "changes": stored.changes, "stopped": stored.stopped,
        }
    )  # fmt: skip


def analysis_of(folders: Sequence[Path], record: Record | None) -> Analysis:
    """The analysis of runs; kept as long as their files do not change.

    Raises:
        MlereduxError: There are no runs, or they are not comparable.
    """
    stamps = stamps_of(folders)
    changes = tuple(record.told) if record else ()
    with _lock:
        return _analysis(stamps, record.plan.model_dump_json() if record else "", changes)


def stamps_of(folders: Sequence[Path]) -> Stamps:
    """The folders of runs, each with what changes when it does."""
    return tuple((path, *(_stamp(path / name) for name in _STAMPED)) for path in sorted(folders))


@lru_cache(maxsize=_KEPT)
def _analysis(stamps: Stamps, plan: str, changes: tuple[str, ...]) -> Analysis:
    from mleredux_experiments.sdk import analysed
    from mleredux_experiments.sources import load_runs

    results = load_runs((path for path, *_ in stamps), rollouts=True)
    if not results.rows:
        raise MlereduxError("There are no runs to compare.", hint="Select runs of two agents on the list of runs.")
    return analysed(results, Plan.model_validate_json(plan) if plan else None, changes=changes)


@lru_cache(maxsize=16)
def results_of(stamps: Stamps) -> Results:
    """The table of runs; kept as long as their files do not change."""
    from mleredux_experiments.sources import load_runs

    return load_runs(path for path, *_ in stamps)


def _pictures(found: Analysis) -> list[Shown]:
    """The pictures of an analysis; kept as long as it is one of the latest."""
    with _lock:  # Matplotlib's settings are global
        if id(found) not in _drawn:
            _drawn[id(found)] = found, [Shown(one.question, one.answer, _image(one.svg())) for one in pictures(found)]
            if len(_drawn) > _KEPT:
                del _drawn[next(iter(_drawn))]
        return _drawn[id(found)][1]


def _image(svg: str) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns
