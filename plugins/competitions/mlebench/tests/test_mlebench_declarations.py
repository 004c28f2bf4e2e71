"""Every declaration is complete, light to import, and listed."""

from __future__ import annotations

import ast
import csv
import gzip
import re
import subprocess
import sys
from pathlib import Path

import mleredux_competition_mlebench
import pytest
from mleredux._core.plugins.loader import resolve
from mleredux.models import Competition
from mleredux_competition_mlebench.facts import all_facts

REFS = {ref.id: ref for ref in mleredux_competition_mlebench.mleredux_register_tasks()}
SPONSORS = ("kaggle", "google", "tensorflow", "lyft", "rsna", "siim", "osic", "aptos", "h&m", "mle-bench")

_CORRECTED = re.compile(
    r"by (?:their )?position\b(?! in)|in the same order|row order|in the order (?:of their|given)|sorted by their"
    r"|never compared|makes? the score NaN|wrong score without a warning"
)
_EXACT = re.compile(r"(?<!bout )\b\d+,\d{3} (?:rows|objects|notebooks)|(?:sample|zeros)\b[^.]* scores \d\.\d*[1-9]\b")
"""Faults of published tasks in the words of their descriptions, and figures that hold for one test set only."""


@pytest.fixture(params=sorted(REFS))
def task(request: pytest.FixtureRequest) -> Competition:
    found: Competition = resolve(REFS[request.param])
    return found


def test_facts_come_with_the_declaration(task: Competition) -> None:
    facts = all_facts()[task.id]
    assert task.title == facts["title"]
    assert task.thresholds is not None
    assert task.thresholds.gold == facts["thresholds"]["gold"]
    assert "mlebench" in task.sets


def test_the_board_ships_best_first_and_without_names(task: Competition) -> None:
    assert task.leaderboard is not None
    with gzip.open(task.leaderboard, "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows[0].keys() == {"score"}
    scores = [float(row["score"]) for row in rows]
    assert scores == sorted(scores, reverse=task.direction == "maximize")


def test_descriptions_say_what_to_submit_and_how_it_is_scored(task: Competition) -> None:
    for obfuscated in (False, True):
        text = task.describe(obfuscated=obfuscated)
        assert "## Metric" in text
        for column in task.submission.id_columns[:1]:
            assert obfuscated or f"`{column}`" in text, column


def test_the_obfuscated_description_does_not_name_the_competition(task: Competition) -> None:
    text = task.describe(obfuscated=True).lower()
    assert task.title.lower() not in text
    assert task.id.lower() not in text
    for sponsor in SPONSORS:
        assert not re.search(rf"\b{re.escape(sponsor)}\b", text), sponsor


def test_fixed_variants_do_not_repeat_what_they_correct(task: Competition) -> None:
    """All of them match rows by id, keep words that resemble missing values, and may draw another test set."""
    texts = [
        task.variants["fixed"](task).describe(obfuscated=flag) for flag in (False, True) if "fixed" in task.variants
    ]
    drawn = bool(texts) and not task.variants["fixed"](task).checksums and bool(task.checksums)
    found = [match[0] for text in texts for match in _CORRECTED.finditer(text)]
    assert not found
    assert not drawn or not [match[0] for text in texts for match in _EXACT.finditer(text)]


def test_declaring_imports_nothing_heavy() -> None:
    modules = "; ".join(f"import {ref.target.partition(':')[0]}" for ref in REFS.values() if ref.target)
    heavy = ["pandas", "sklearn", "numpy", "py7zr", "PIL", "pyarrow", "fastparquet", "bson"]
    code = f"import sys; {modules}; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def _lines_of_code(text: str) -> int:
    docstrings = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    return sum(bool(line.strip()) and number not in docstrings for number, line in enumerate(text.splitlines(), 1))


def test_preparing_all_of_them_takes_less_than_4400_lines_of_code() -> None:
    """Declarations, building blocks, facts, registration, without blank lines and docstrings.

    Left out is what does not prepare: descriptions, tables of facts, leaderboards, and getting data from Kaggle.
    """
    package = Path(mleredux_competition_mlebench.__file__).parent
    files = [*package.glob("*.py"), *(package / "blocks").rglob("*.py"), *(package / "competitions").rglob("*.py")]
    assert sum(_lines_of_code(path.read_text(encoding="utf-8")) for path in files) < 4400
