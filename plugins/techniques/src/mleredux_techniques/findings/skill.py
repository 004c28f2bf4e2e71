"""Findings as an Agent Skill (https://agentskills.io/specification): a folder with `SKILL.md`, and two or three modules
that it links to.

Each line ends with the id of its fact and, for recommendations, the measured effect with a 95 % interval, in units of
efficacy: 0 is the naive choice, 1 a strong one.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from mleredux.plugin.command import current
from mleredux.plugin.files import write_atomically
from mleredux_rollout import ExportedRun, Format

from mleredux_techniques.curriculum import Lesson, lessons_of
from mleredux_techniques.texts import rendered

MARK = " — "
"""Separates a line from the id and the effect."""
_NAME_LENGTH = 64
_MODULES = {
    "validation": ("How to validate", ("cv", "leakage", "shift", "metric", "debugging")),
    "columns": ("How to treat columns", ("eda", "encoding", "features", "missing", "scaling")),
    "models": ("How to train and combine models", ()),
}
"""The file and title of each module, with its techniques; the last one has all others."""


def skill_name(text: str) -> str:
    """Return a valid name of a skill: lowercase letters, digits and single hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower())[:_NAME_LENGTH].strip("-") or "findings"


def skill_files(task: str, lessons: Iterable[Lesson], name: str) -> dict[str, str]:
    """Return the texts of a skill by path, `SKILL.md` first.

    Args:
        task: The task that the lessons are about.
        lessons: The lessons.
        name: The name of the skill, which is also that of its folder.
    """
    modules: dict[str, list[str]] = defaultdict(list)
    for lesson in lessons:
        if lines := list(_lines(lesson)):
            place = next((key for key, (_, names) in _MODULES.items() if lesson.technique in names), "models")
            modules[place] += [f"## {lesson.title}", "", *lines, ""]
    titles = {key: title for key, (title, _) in _MODULES.items() if key in modules}
    links = "".join(f"- [{title}](references/{key}.md)\n" for key, title in titles.items())
    shown = re.sub("-{3,}", "--", " ".join(task.split()))[:200]  # readers end the header at the next three hyphens
    description = f"Graded findings about the data of {shown}. Use when you validate, prepare data or train models."
    quoted = json.dumps(description, ensure_ascii=False)
    pages = {f"references/{key}.md": "\n".join([f"# {title}", "", *modules[key]]) for key, title in titles.items()}
    head = rendered("SKILL.md.j2", name=name, description=quoted, task=task, links=links)
    return {"SKILL.md": head, **pages}


def write_skill(task: str, lessons: Iterable[Lesson], folder: Path) -> list[Path]:
    """Write a skill whose name is that of the folder; return its files.

    Raises:
        OSError: The folder can't be written.
    """
    texts = skill_files(task, lessons, skill_name(folder.resolve().name))
    for path, content in texts.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / path, content)
    return [folder / path for path in texts]


def _lines(lesson: Lesson) -> Iterator[str]:
    for finding in lesson.findings:
        fact = f"{lesson.technique}.{skill_name(str(finding['name']))}"
        yield f"- {finding['explanation']}{MARK}{fact}, graded as correct"
    for number, choice in enumerate(lesson.recommendations, 1):
        for line in choice["lines"]:
            yield f"- {line}{MARK}{lesson.technique}.recommendation-{number}, {_effect(choice)}"


def _effect(choice: Mapping[str, Any]) -> str:
    efficacy, error = choice["efficacy"], choice["uncertainty"]
    if efficacy is None:
        return "effect not scored"
    half = 1.96 * (error or 0.0)
    return f"effect {efficacy:.2f}, 95 % {efficacy - half:.2f} to {efficacy + half:.2f}"


def _zip(runs: Sequence[ExportedRun], _options: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield an archive with a skill for each competition whose technique tasks were run."""
    by_task: dict[str, list[tuple[str, Any]]] = defaultdict(list)
    for exported in runs:
        question, at, base = exported.run.spec.task.partition("@")
        technique, plus, variant = question.partition("+")
        if at and technique in current().entries("techniques"):
            run = SimpleNamespace(id=exported.run.id, spec=exported.run.spec, report=exported.report)
            by_task[f"{base}{plus}{variant}"].append((technique, run))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for task, pairs in by_task.items():
            name = skill_name(f"findings {task}")
            for path, content in skill_files(task, lessons_of(pairs), name).items():
                archive.writestr(zipfile.ZipInfo(f"{name}/{path}"), content)
    yield buffer.getvalue()


skill = Format(
    id="skill",
    title="Agent Skills (SKILL.md) of findings, in a zip file",
    suffix=".zip",
    write=_zip,
    together=True,
    needs=("score",),
    trusted=True,
)
