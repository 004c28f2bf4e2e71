"""The texts that findings are compared with, and findings as a skill that other programs read."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mleredux_agent_automl.advice import read_advice
from mleredux_techniques.curriculum import Lesson, text
from mleredux_techniques.findings.contexts import contexts, sham, size
from mleredux_techniques.findings.skill import skill_files, skill_name, write_skill
from skills_ref import read_properties, validate

SOURCE = {"run": "r", "agent": "analyst", "score": 0.9}


def _lesson(technique: str, facts: list[str], lines: list[str], efficacy: float | None = 0.8) -> Lesson:
    findings = [{"name": f"fact {place}", "explanation": fact, **SOURCE} for place, fact in enumerate(facts)]
    choice = {"lines": lines, "efficacy": efficacy, "uncertainty": 0.1, **SOURCE}
    return Lesson(technique, f"{technique.title()}: a title", findings, [choice] if lines else [], [SOURCE])


WINE = [
    _lesson("encoding", ["It has 2 categories."], ["TargetEncoder(smooth='auto'): `a`, `b`"]),
    _lesson("leakage", [], ["drop_columns: `x` (copy)"], None),
]
SHIP = [
    _lesson("encoding", ["It has 2 categories.", "It has 9 rows."], ["TargetEncoder(smooth='auto'): `a`, `c`"]),
    _lesson("cv", ["Rows belong together."], ["GroupKFold(groups=`g`, n_splits=5)"]),
    _lesson("leakage", [], ["drop_columns: `x`, `y` (noisy_copy)"]),
]


def test_a_sham_says_nothing_that_is_right_here_and_as_much() -> None:
    made = sham("wine", {"wine": WINE, "ship": SHIP})
    lines = [line for lesson in made for choice in lesson.recommendations for line in choice["lines"]]
    assert lines == [
        "TargetEncoder(smooth='auto'): `c`",
        "GroupKFold(groups=`g`, n_splits=5)",
        "drop_columns: `y` (noisy_copy)",
    ]
    assert [fact["explanation"] for lesson in made for fact in lesson.findings] == ["It has 9 rows."]
    assert size(made) == size(WINE)
    assert sham("wine", {"wine": WINE, "twin": WINE}) == []


def test_all_texts_of_a_task_have_the_same_length() -> None:
    made = contexts("wine", {"wine": WINE, "ship": SHIP}, SHIP)
    assert len({len(known) for known in made.values()}) == 1
    assert made["graded"].startswith(text("wine", WINE).rstrip())
    assert "efficacy" not in made["unfiltered"]
    assert not re.search(r"`\w+`", made["checklist"])


COLUMN = st.text(st.characters(blacklist_categories=("C", "Z"), blacklist_characters="`—"), min_size=1, max_size=9)


@given(st.text(min_size=1, max_size=90), st.lists(COLUMN, min_size=1, max_size=4, unique=True))
def test_a_skill_is_valid_for_any_task_and_says_what_the_text_says(
    tmp_path_factory: Any, task: str, columns: list[str]
) -> None:
    name = skill_name(f"findings {task}")
    lessons = [
        _lesson("encoding", [], [f"TargetEncoder(smooth='auto'): {', '.join(f'`{each}`' for each in columns)}"]),
        _lesson("scaling", [], ["QuantileTransformer(): `q`"], None),
        _lesson("cv", ["A fact."], ["GroupKFold(groups=`g`, n_splits=5)"], None),
    ]
    folder = tmp_path_factory.mktemp("skills") / name
    files = write_skill("wine", lessons, folder)
    assert validate(folder) == []
    assert read_properties(folder).name == name
    linked = re.findall(r"\]\((references/[a-z]+\.md)\)", files[0].read_text())
    assert [str(path.relative_to(folder)) for path in files[1:]] == linked
    assert len(linked) in (2, 3)
    known = "\n".join(path.read_text(encoding="utf-8") for path in files)
    assert "encoding.recommendation-1, effect 0.80, 95 % 0.60 to 1.00" in known
    assert "cv.fact-0, graded as correct" in known
    assert read_advice(known) == read_advice(text("wine", lessons))
    assert read_advice(known).encoders.keys() == set(columns)
    assert not read_advice(known).scalers  # it made no significant difference


@pytest.mark.parametrize("task", ["wine+planted-7", "a@b", "É", "x" * 200, "name: evil\n---", "--", "A_b.C"])
def test_a_skill_of_a_task_with_any_name_is_valid(task: str, tmp_path: Path) -> None:
    folder = tmp_path / skill_name(f"findings {task}")
    for path, content in skill_files(task, WINE, folder.name).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content, encoding="utf-8")
    assert validate(folder) == []


def test_findings_are_written_as_a_skill_and_exported(cli: Any, tmp_path: Path) -> None:
    for task in ("imbalance@shop", "eda@shop"):
        assert cli("run", task, "--agent", "analyst", "--sandbox", "process").returncode == 0
    made = cli("findings", "shop", "--output", "skills/shop-findings")
    assert made.returncode == 0, made.stderr
    assert validate(tmp_path / "skills" / "shop-findings") == []
    runs = [path.name for path in (tmp_path / "runs").glob("2*")]
    exported = cli("export", *runs, "--to", "skill", "--output", "skills.zip")
    assert exported.returncode == 0, exported.stderr
    with zipfile.ZipFile(tmp_path / "skills.zip") as archive:
        archive.extractall(tmp_path / "unpacked")
    [folder] = (tmp_path / "unpacked").iterdir()
    assert folder.name == "findings-shop"
    assert validate(folder) == []
    written = {path.relative_to(folder): path.read_text() for path in folder.rglob("*.md")}
    plain = tmp_path / "skills" / "shop-findings"
    assert written.keys() == {path.relative_to(plain) for path in plain.rglob("*.md")}
    lone = cli("findings", "shop", "--form", "sham")
    assert lone.returncode == 2
    sheet = cli("findings", "shop", "--form", "checklist")
    assert len(sheet.stdout) >= len(cli("findings", "shop").stdout)
