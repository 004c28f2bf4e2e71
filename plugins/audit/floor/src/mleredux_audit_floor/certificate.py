"""Certificates of generated tasks: twelve fields that are measured from the data, and bound to its digest.

The verdict of each field, `ok`, is true, false, or null if it can't be measured on one task. A task is sound if no
verdict is false.
"""

from __future__ import annotations

import hashlib
import json
import re
import statistics
import tempfile
from itertools import combinations
from pathlib import Path
from typing import Any

from mleredux.errors import NotApplicable
from mleredux.plugin.command import Catalogue, DataStore
from mleredux.plugin.host import Prepared, prepare
from mleredux.plugin.task import Task

from mleredux_audit_floor.documents import measure_documents
from mleredux_audit_floor.measurement import BLIND, Measurement, fields_of, measure, read
from mleredux_audit_floor.reference_models import GOOD, PANEL

SCHEMA = "mleredux-certificate/1"
DISTANCE, NEAR = 0.9, 0.45
"""Minimum distance to other seeds, and maximum distance of p from its calibrated value."""
CALIBRATED = {"easy": 0.44, "medium": 0.25, "hard": 0.07}
"""Mean skill of the panel on micro tasks by level, as measured by `benchmarks/micro_tasks.py`."""
_SEED = re.compile(r"(?<=-)(public-)?([0-9]+)(?=@|$)")


def digest_of(task: Task, prepared: Path) -> str:
    """Return the SHA-256 of a task: its identity, its description, and the names and content of its prepared files."""
    identity = [task.id, task.version, task.metric.id, task.direction, task.describe()]
    digest = hashlib.sha256(json.dumps(identity).encode())
    for path in sorted(path for part in ("public", "private") for path in (prepared / part).rglob("*")):
        if path.is_file():
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            digest.update(f"{path.relative_to(prepared).as_posix()} {content}\n".encode())
    return f"sha256:{digest.hexdigest()}"


def described(task: Task) -> str:
    """Return the SHA-256 of the description of a task."""
    return f"sha256:{hashlib.sha256(task.describe().encode()).hexdigest()}"


def certify(task: Task, catalogue: Catalogue, store: DataStore) -> dict[str, Any]:
    """Measure a generated task, which is prepared if necessary.

    Raises:
        NotApplicable: The task is not generated from a seed, or does not consist of a training and a test table.
        DataError: The task can't be prepared.
    """
    if "planted" not in task.tags:
        raise NotApplicable(
            f"{task.id} can't be certified: it is not generated from a seed.",
            hint="Choose a task such as synthetic-micro-7 or leakage@synthetic-micro-7.",
        )
    prepared = prepare(task, catalogue, store)
    with tempfile.TemporaryDirectory(prefix="mleredux-certify-") as scratch:
        if task.kind == "technique":
            measured = measure_documents(task, store, catalogue, Path(scratch))
        else:
            measured = _measured(measure(task, prepared, catalogue, Path(scratch)))
        fields = {**measured, **_generated(task, prepared, catalogue, DataStore(Path(scratch) / "again"))}
    return {
        "schema": SCHEMA,
        "task": task.id,
        "version": task.version,
        "digest": digest_of(task, prepared.public.parent),
        "description": described(task),
        "sound": all(field["ok"] is not False for field in fields.values()),
        "fields": fields,
    }


def contradictions(
    certificate: dict[str, Any], catalogue: Catalogue, store: DataStore, bundle: Path | None = None
) -> list[str]:
    """Measure a certified task again; return a sentence for each difference from its certificate.

    Args:
        bundle: A prepared folder whose files must also be those that were certified.
    """
    fields = certificate.get("fields")
    if certificate.get("schema") != SCHEMA or not isinstance(fields, dict):
        return ["The certificate has an unsupported version."]
    task = catalogue.task(str(certificate.get("task")))
    if certificate.get("version") != task.version:
        return [f"It certifies version {certificate.get('version')} of {task.id}, not version {task.version}."]
    if certificate.get("description") != described(task):
        return [f"It is stale: the description of {task.id} has changed. Certify the task again."]
    if bundle is not None and digest_of(task, bundle) != certificate.get("digest"):
        return [f"The files of {task.id} differ from the certified files."]
    if digest_of(task, prepare(task, catalogue, store).public.parent) != certificate.get("digest"):
        return [f"The data of {task.id} differs from the certified data."]
    again = certify(task, catalogue, store)
    verdicts = {name: field["ok"] for name, field in again["fields"].items()}
    claimed = {name: field.get("ok") if isinstance(field, dict) else "" for name, field in fields.items()}
    differing = sorted(
        name for name in {*verdicts, *claimed} if claimed.get(name, "") is not verdicts.get(name, "none")
    )
    if differing or certificate.get("sound") is not again["sound"]:
        return [f"The measured verdict differs: {', '.join(differing or ['sound'])}."]
    failed = [name for name, ok in verdicts.items() if ok is False]
    return [f"The task is not sound: {', '.join(failed)}."] if failed else []


def _measured(facts: Measurement) -> dict[str, dict[str, Any]]:
    """Return the fields that compare scores."""
    value = {name: facts.value(report) for name, report in facts.models.items()}
    best, ceiling = max(value[name] for name in GOOD), min(facts.value(report) for report in facts.oracles.values())
    above = {name: report.score for name, report in facts.nulls.items() if (report.percentile or 0) > 50}
    pairs = [value[sound] > value[other] for sound in GOOD for other in PANEL if other not in GOOD]
    level = next((name for name in CALIBRATED if {name, "micro"} <= set(facts.task.tags)), None)
    p = statistics.fmean(facts.skill(name) for name in PANEL)
    return {
        **fields_of(facts.wrong, {name: facts.models[name].score for name in PANEL}, pairs, facts.cpu_seconds),
        "floor_and_ceiling": {
            "ok": not above and facts.oracles["answers"].valid_submission and ceiling >= best - 2 * facts.error,
            "oracles": {name: report.score for name, report in facts.oracles.items()},
            "null_agents": len(facts.nulls),
            "above_the_median": above,
        },
        "data_blind": {"ok": not above.keys() & set(BLIND), "agents": [name for name in BLIND if name in facts.nulls]},
        "solutions": {
            "ok": all(value["constant"] < value[name] and best - value[name] <= 2 * facts.error for name in GOOD),
            "scores": {name: facts.models[name].score for name in GOOD},
            "standard_error": round(facts.error, 6),
        },
        "difficulty": {
            "ok": None if level is None else abs(p - CALIBRATED[level]) <= NEAR,
            "level": level,
            "p": round(p, 4),
            "calibrated": CALIBRATED if level else None,
        },
        "leaks": {
            "ok": not (leaks := [name for name, report in facts.copies.items() if (report.percentile or 0) >= 90]),
            "columns_that_reach_the_top": leaks,
        },
    }  # fmt: skip


def _generated(task: Task, prepared: Prepared, catalogue: Catalogue, again: DataStore) -> dict[str, dict[str, Any]]:
    """Return the fields that compare the data with that of a second generation and of other seeds."""
    folder = prepared.public.parent
    same = digest_of(task, prepare(task, catalogue, again).public.parent) == digest_of(task, folder)
    rows, pairs = _rows(prepared.public, "train.csv"), _pairs(prepared.public, "train.csv")
    by_chance = _overlap(pairs, _pairs(prepared.public, "test.csv"))  # the columns may have few values
    distances, shared = dict[str, float](), len(rows & _rows(prepared.public, "test.csv"))
    for name in _others(task.id):
        try:
            other = prepare(catalogue.task(name), catalogue, again).public
        except NotApplicable:  # the technique, to the data of that seed
            continue
        shared += len(rows & (_rows(other, "train.csv") | _rows(other, "test.csv")))
        distances[name] = round(1 - max(0.0, _overlap(pairs, _pairs(other, "train.csv")) - by_chance), 4)
    commitment = re.search(r"sha256:[0-9a-f]{64}", task.note or "")
    return {
        "truth": {"ok": same, "by": "construction", "files": sorted(path.name for path in prepared.private.iterdir())},
        "secret": {
            "ok": commitment is not None or "-public-" in task.id,
            "commitment": commitment[0] if commitment else None,
            "rotation": "when `mleredux planted reveal` reveals it" if commitment else None,
        },
        "disjoint": {
            "ok": not shared and min(distances.values()) >= DISTANCE if distances else None,
            "part": "evaluation" if commitment else "training",
            "rows_shared_with_other_seeds": shared,
            "distance_to_other_seeds": distances,
        },
    }


def _others(name: str) -> list[str]:
    """Return the names of tasks with neighboring seeds, and with the same seed in the other part."""
    match = _SEED.search(name)
    assert match is not None, name
    stem, public, number, base = name[: match.start()], match[1] or "", int(match[2]), name[match.end() :]
    near = {other % 2**31 for other in (number - 1, number + 1, number + 2**30)}
    seeds = [*(f"{public}{other}" for other in sorted(near)), f"{'' if public else 'public-'}{number}"]
    return [f"{stem}{seed}{base}" for seed in seeds]


def _rows(public: Path, name: str) -> set[tuple[str, ...]]:
    """Return the rows of a table without the id and the target."""
    head, *rows = read(public / name)
    kept = [place for place, column in enumerate(head) if column.startswith("x")]
    return {tuple(row[place] for place in kept) for row in rows}


def _pairs(public: Path, name: str) -> set[tuple[str, str]]:
    """Return all pairs of long values that occur in the same row of a table."""
    rows = (sorted({cell for cell in row if len(cell) > 4}) for row in _rows(public, name))
    return {pair for cells in rows for pair in combinations(cells, 2)}


def _overlap(first: set[tuple[str, str]], second: set[tuple[str, str]]) -> float:
    """Return the share of the smaller set that is in the other."""
    return len(first & second) / max(1, min(len(first), len(second)))
