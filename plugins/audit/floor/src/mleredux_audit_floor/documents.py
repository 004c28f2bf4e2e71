"""The fields of a certificate that compare scores, for techniques: submissions are JSON documents.

Null agents answer at random in the form of the document; they know the names of the columns or, if they are blind,
nothing. The panel consists of solutions with some or all of their values falsified. Good solutions are of four kinds:
the planted truth; the answer of an agent that analyzes the public files alone, and shares no code with the techniques;
the truth in another order, with other types; and the truth with another choice. The first two are independent.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import mleredux
from mleredux.errors import NotApplicable
from mleredux.plugin.artifact import Report
from mleredux.plugin.command import Catalogue, DataStore
from mleredux.plugin.host import Prepared, prepare
from mleredux.plugin.task import Task

from mleredux_audit_floor.measurement import fields_of, graded

FLOOR, CLOSE = 0.4, 0.95
"""Maximum score of null agents, and minimum share of the best score that good solutions reach."""
NULLS, BLIND, ATTEMPTS = 10, 5, 50
ANALYST, OPTIONS = "analyst", {"thorough": True}
"""The agent that analyzes the public files, and its options."""
SOLUTION, ANALYSIS = "the solution", "an analysis of the public files"
"""The names of the two independent solutions."""
FALSIFIED = (0.1, 0.3, 1.0)
"""Shares of falsified values in the panel; each is drawn three times."""


def measure_documents(task: Task, store: DataStore, catalogue: Catalogue, scratch: Path) -> dict[str, dict[str, Any]]:
    """Grade all documents, and return the fields.

    Raises:
        NotApplicable: The technique has no solution.
    """
    if task.solution is None or (form := task.submission.document) is None:
        raise NotApplicable(f"{task.id} can't be certified: its technique has no solution.", hint="Define `solution`.")
    prepared = prepare(task, catalogue, store)
    run = mleredux.run(task.id, ANALYST, options=OPTIONS, sandbox="process", runs_dir=scratch, data_dir=store.path)
    began = time.process_time()
    content = task.solution(task, prepared.private)
    best, names = json.loads(content), json.loads((prepared.public / "question.json").read_bytes())["features"]
    groups = {
        "good": {SOLUTION: best, "in reverse order, with other types": _changed(best)},
        "null": {f"random answers {seed}": _random(form, names, seed) for seed in range(NULLS)},
        "blind": {f"random answers without the data {seed}": _random(form, ["x", "y"], seed) for seed in range(BLIND)},
        "panel": {
            f"{share:.0%} falsified {seed}": changed
            for share in FALSIFIED
            for seed in range(3)
            if (changed := _falsified(best, share, random.Random(seed))) != best
        },
    }
    files = {group: {name: json.dumps(item).encode() for name, item in docs.items()} for group, docs in groups.items()}
    files["wrong"] = dict(_invalid(best, content))
    drawn = (_random(form, names, seed) for seed in range(ATTEMPTS))
    others = {json.dumps(document) for other in drawn for document in _other_choices(best, other, names)}
    files["other"] = {f"another choice {place}": text.encode() for place, text in enumerate(sorted(others))}
    paths = {
        group: {name: scratch / group / name / task.submission.file for name in docs} for group, docs in files.items()
    }
    for path, text in ((paths[group][name], text) for group, docs in files.items() for name, text in docs.items()):
        path.parent.mkdir(parents=True)
        path.write_bytes(text)
    reports, _ = graded(task, paths, prepared.private, catalogue)
    return _fields(reports, run.score or 0.0, prepared, content, time.process_time() - began)


def _fields(
    reports: dict[str, dict[str, Report]], analysis: float, prepared: Prepared, content: bytes, seconds: float
) -> dict[str, dict[str, Any]]:
    scores = {group: {name: item.score or 0.0 for name, item in named.items()} for group, named in reports.items()}
    best = scores["good"][SOLUTION]
    above = {name: score for name, score in {**scores["null"], **scores["blind"]}.items() if score > FLOOR}
    others = {name: score for name, score in scores["other"].items() if score >= best}
    tried = {**scores["good"], ANALYSIS: analysis, **others}
    accepted = {name: score for name, score in tried.items() if score >= CLOSE * best}
    panel = scores["panel"].values()
    pairs = [careful > other for careful in scores["good"].values() for other in panel]
    hidden = (content, *(path.read_bytes() for path in prepared.private.glob("*.json")))
    public = [path for path in prepared.public.rglob("*") if path.is_file()]
    leaks = [path.name for path in public if any(text.strip() in path.read_bytes() for text in hidden)]
    return {
        **fields_of(reports["wrong"], {**scores["panel"]}, pairs, seconds),
        "floor_and_ceiling": {
            "ok": best >= 1 and not above,
            "oracles": {"solution": best},
            "null_agents": NULLS,
            "above_the_floor": above,
        },
        "data_blind": {"ok": not above.keys() & scores["blind"].keys(), "agents": list(scores["blind"])},
        "solutions": {
            "ok": accepted.keys() >= scores["good"].keys() and (ANALYSIS in accepted or None),
            "scores": accepted,
            "independent": [name for name in (SOLUTION, ANALYSIS) if name in accepted],
            "not_accepted": {name: score for name, score in tried.items() if name not in accepted},
        },
        "difficulty": {"ok": None, "level": None, "p": round(sum(panel) / len(panel), 4), "calibrated": None},
        "leaks": {"ok": not leaks, "files_that_contain_answers": leaks},
    }  # fmt: skip


def _changed(value: Any) -> Any:
    """Return a document with its lists of objects in reverse order, and its numbers rounded to four digits; of whole
    numbers, 1.0 becomes 1."""
    if isinstance(value, dict):
        return {key: _changed(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_changed(part) for part in (value[::-1] if value and isinstance(value[0], dict) else value)]
    return json.loads(f"{value:.4g}") if isinstance(value, float) else value


def _other_choices(value: Any, drawn: Any, names: list[str]) -> Iterator[Any]:
    """Yield copies of a document, each with one choice of a document drawn at random; names of columns are kept."""
    if isinstance(value, dict) and isinstance(drawn, dict):
        for name in sorted(value.keys() & drawn.keys()):
            yield from ({**value, name: other} for other in _other_choices(value[name], drawn[name], names))
    elif isinstance(value, list) and isinstance(drawn, list):
        for place, pair in enumerate(zip(value, drawn, strict=False)):
            yield from ([*value[:place], other, *value[place + 1 :]] for other in _other_choices(*pair, names))
    elif isinstance(value, str) and value != drawn and not any(text in names for text in (value, drawn)):
        yield drawn


def _falsified(value: Any, share: float, rng: random.Random) -> Any:
    """Return a document with a share of its numbers and truth values changed, and of its lists emptied."""
    if isinstance(value, dict):
        return {key: _falsified(part, share, rng) for key, part in value.items()}
    if isinstance(value, list):
        return [_falsified(part, share, rng) for part in value if rng.random() >= share / 2]
    if isinstance(value, bool):
        return value ^ (rng.random() < share)
    return value * 2 + 1 if isinstance(value, int) and rng.random() < share else value


def _random(form: type[Any], names: list[str], seed: int) -> Any:
    """Return a document of a form: a valid one if one of several attempts succeeds."""
    schema, rng, drawn = form.model_json_schema(), random.Random(seed), None
    for _ in range(ATTEMPTS):
        drawn = _of_schema(schema, schema.get("$defs", {}), names, rng)
        with suppress(ValueError):
            form.model_validate_json(json.dumps(drawn))
            break
    return drawn


def _of_schema(schema: dict[str, Any], defined: dict[str, Any], names: list[str], rng: random.Random) -> Any:
    if "$ref" in schema:
        return _of_schema(defined[schema["$ref"].rpartition("/")[2]], defined, names, rng)
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return _of_schema(rng.choice(options), defined, names, rng)
    if "const" in schema or "enum" in schema:
        return schema["const"] if "const" in schema else rng.choice(schema["enum"])
    kind = schema.get("type")
    if kind == "object":
        properties = schema.get("properties") or dict.fromkeys(names, schema.get("additionalProperties", {}))
        return {name: _of_schema(field, defined, names, rng) for name, field in properties.items()}
    if kind == "array":
        drawn = rng.sample(names, rng.randint(0, len(names)))
        return [_of_schema(schema["items"], defined, [name], rng) for name in drawn]
    if kind in ("integer", "number"):
        low, high = schema.get("minimum", 0), schema.get("maximum", 100)
        return rng.randint(low, high) if kind == "integer" else rng.uniform(low, high)
    return rng.choice(names) if kind == "string" else rng.random() < 0.5 if kind == "boolean" else None


def _invalid(best: dict[str, Any], content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield documents that are wrong by construction: the solution with one fault each."""
    first = next(name for name in best if name not in ("notes", "rationale"))
    yield "the file is empty", b""
    yield "the document is cut off", content[: len(content) // 2]
    yield "the file is not text", b"\xff\xfe\x00" + content
    faults: dict[str, Any] = {
        "the document is a list": [best],
        "the document is null": None,
        "the document is plain text": content.decode(),
        "there are no fields": {},
        "a field is missing": {name: value for name, value in best.items() if name != first},
        "a field is unknown": {**best, "unknown": 1},
        "a field has another type": {**best, first: {"unknown": [1]}},
    }
    yield from ((name, json.dumps(value).encode()) for name, value in faults.items())
