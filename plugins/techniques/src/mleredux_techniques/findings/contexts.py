"""The texts of the arms, with which a task's findings are compared.

| form | text |
|---|---|
| `graded` | facts that were graded as correct, and recommendations with an efficacy of 0.5 or more |
| `unfiltered` | everything that the agent claimed and recommended, whether right or wrong |
| `sham` | graded findings about other tasks, as many, without those that are also right here |
| `checklist` | general advice, the same for every task |
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.resources import files

from mleredux_techniques.curriculum import Lesson, text

FORMS = ("graded", "unfiltered", "sham", "checklist")
_COLUMN = re.compile(r"`([^`]+)`")

Meaning = tuple[str, ...]
"""The technique, the strategy or fact, and the columns that a statement is about."""


def contexts(task: str, graded: Mapping[str, list[Lesson]], unfiltered: list[Lesson]) -> dict[str, str]:
    """Return the texts of all forms for a task, padded with a rule to the same length.

    Args:
        task: The task.
        graded: The lessons of all tasks of the experiment, by task; the sham uses those of the other tasks.
        unfiltered: Its lessons without grading, like those of `collect(…, graded=False)`.
    """
    texts = {
        "graded": text(task, graded[task]),
        "unfiltered": text(task, unfiltered, graded=False),
        "sham": text(task, sham(task, graded)),
    }
    length = max(map(len, texts.values()))
    texts["checklist"] = checklist(task, length)
    return {form: _padded(known, length) for form, known in texts.items()}


def checklist(task: str, length: int) -> str:
    """Return the general advice, as many of its lines as fit into a given number of characters."""
    text = f"# General advice for {task}\n\n"
    for line in (files(__package__) / "checklist.md").read_text(encoding="utf-8").splitlines(keepends=True):
        if len(text) + len(line) > length:
            break
        text += line
    return text


def sham(task: str, lessons: Mapping[str, list[Lesson]]) -> list[Lesson]:
    """Return findings about other tasks in the form of a task's own: as many facts and statements, if there are.

    A statement that is also right for the task is left out: the same fact, or the same strategy for the same column or
    for the whole data.
    """
    own = lessons[task]
    right = {meaning for lesson in own for meaning, _ in _statements(lesson)}
    facts, wanted = sum(len(lesson.findings) for lesson in own), len(right)
    wanted -= facts
    donors = sorted((known for other, known in lessons.items() if other != task), key=size, reverse=True)
    chosen: dict[str, Lesson] = {}
    for lesson in (lesson for donor in donors for lesson in donor):
        mine = chosen.setdefault(lesson.technique, replace(lesson, findings=[], recommendations=[]))
        for finding in lesson.findings:
            if facts > 0 and (lesson.technique, finding["explanation"]) not in right:
                mine.findings.append(finding)
                facts -= 1
        for choice in lesson.recommendations:
            pairs = [pair for line in choice["lines"] for pair in _split(lesson.technique, line)]
            lines = [line for meaning, line in pairs if meaning not in right][: max(wanted, 0)]
            if lines:
                mine.recommendations.append({**choice, "lines": lines})
                wanted -= len(lines)
    return [lesson for lesson in chosen.values() if lesson.findings or lesson.recommendations]


def size(lessons: list[Lesson]) -> int:
    """Return the number of facts and statements."""
    return sum(len(list(_statements(lesson))) for lesson in lessons)


def _statements(lesson: Lesson) -> Iterator[tuple[Meaning, str]]:
    for finding in lesson.findings:
        yield (lesson.technique, str(finding["explanation"])), str(finding["explanation"])
    for choice in lesson.recommendations:
        for line in choice["lines"]:
            yield from _split(lesson.technique, line)


def _split(technique: str, line: str) -> Iterator[tuple[Meaning, str]]:
    """Split a line of a recommendation into one per column, each with its meaning; other arguments do not count."""
    strategy, colon, rest = line.partition(": ")
    name, columns = strategy.partition("(")[0].strip(), _COLUMN.findall(rest)
    if not colon or not columns:
        yield (technique, name or line, *_COLUMN.findall(line)), line
        return
    tail = f" {rest.rpartition(' ')[2]}" if rest.endswith(")") else ""
    for column in columns:
        yield (technique, name, column), f"{strategy}: `{column}`{tail}"


def _padded(known: str, length: int) -> str:
    rule = length - len(known.rstrip("\n")) - 3
    return known if rule < 1 else f"{known.rstrip()}\n\n{'-' * rule}\n"
