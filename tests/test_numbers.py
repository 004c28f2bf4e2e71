"""People read numbers in full: formats that may print an exponent, such as `5e-05`, are for machines alone.

`mleredux.models.formats.plain` writes numbers for people.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from mleredux.models.formats import plain

ROOT = Path(__file__).parents[1]
SOURCES = sorted(path for top in ("core", "kits", "plugins") for path in ROOT.glob(f"{top}/**/src/**/*.py"))
_IN_TEXT = re.compile(r"\{[^{}\s]*:[^{}\s|]*[gGeE]\}|%[-+ #0]*[\d.]*[gGeE](?![a-zA-Z])")

ALLOWED = {
    "core/src/mleredux/models/formats.py": "the functions that write numbers",
    "plugins/agents/automl/src/mleredux_agent_automl/search.py": "the agent's own log, and its learning rates",
    "plugins/agents/baseline/src/mleredux_agent_baseline/solve.py": "the agent's own log",
    "core/src/mleredux/_core/stages/dev_scores.py": "rounding",
    "plugins/agents/baseline/src/mleredux_agent_baseline/work.py": "the agent's own log",
    "plugins/audit/floor/src/mleredux_audit_floor/documents.py": "rounding",
    "plugins/audit/floor/src/mleredux_audit_floor/submissions.py": "cells of a submission",
    "plugins/audit/leaks/src/mleredux_audit_leaks/checks/duplicates.py": "keys that are compared",
    "plugins/audit/leaks/src/mleredux_audit_leaks/tables.py": "keys that are compared",
    "plugins/audit/leaks/src/mleredux_audit_leaks/truth.py": "keys that are compared",
    "plugins/competitions/mlebench/src/mleredux_competition_mlebench/competitions/ventilator_pressure_prediction/"
    "__init__.py": "cells of a published table",
    "plugins/executors/ray/src/mleredux_executor_ray/executor.py": "an argument for Ray",
    "plugins/executors/slurm/src/mleredux_executor_slurm/executor.py": "a format of `sinfo`",
    "plugins/experiments/src/mleredux_experiments/results/scores.py": "rounding",
    "plugins/services/scripted-llm/src/mleredux_scripted_llm/server.py": "an HTTP header",
    "plugins/techniques/src/mleredux_techniques/_kit/data/dataset.py": "cells of a table",
    "plugins/techniques/src/mleredux_techniques/_kit/declaration/preparation.py": "rounding",
    "plugins/techniques/src/mleredux_techniques/feedback.py": "rounding",
    "plugins/techniques/src/mleredux_techniques/scaling/technique.py": "rounding",
    "plugins/trackers/mlflow/src/mleredux_tracker_mlflow/upload.py": "a digest",
}
"""Files that write numbers for machines, and what for."""


def exponents(code: str) -> Iterator[int]:
    """The lines that format a number so that it may get an exponent."""
    tree = ast.parse(code)
    formats = {id(part.format_spec) for part in ast.walk(tree) if isinstance(part, ast.FormattedValue)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) and id(node) in formats:
            form = "".join(str(part.value) if isinstance(part, ast.Constant) else "" for part in node.values)
            if re.search(r"[gGeE]$", form):
                yield node.lineno
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _IN_TEXT.search(node.value):
            yield node.lineno


@pytest.mark.parametrize(
    "code",
    [
        *('f"{x:g}"', 'f"{x:.3g}"', 'f"{x:+.{n}g}"', '"{:g}".format(x)', '"{x:.2e}".format(x=x)', '"%g" % x'),
        *('"%.3e s" % x', "f\"a {f(x['b']):,.4G} b\""),
    ],
)
def test_such_formats_are_seen(code: str) -> None:
    assert list(exponents(code)) == [1]


@pytest.mark.parametrize("code", ['f"{x:.3f}"', '"50 % given"', '"100%"', 'f"{x:d}"', '"{a: g}"'])
def test_others_are_not(code: str) -> None:
    assert not list(exponents(code))


def test_numbers_for_people_have_no_exponent() -> None:
    found: dict[str, list[int]] = {}
    for path in SOURCES:
        if lines := list(exponents(path.read_text(encoding="utf-8"))):
            found[path.relative_to(ROOT).as_posix()] = lines
    assert {name: lines for name, lines in found.items() if name not in ALLOWED} == {}
    assert ALLOWED.keys() - found.keys() == set(), "these need no exception any more"


@pytest.mark.parametrize(
    ("value", "digits", "signed", "text"),
    [
        (5e-05, 12, False, "0.00005"),
        (1e22, 12, False, "10000000000000000000000"),
        (3600, 12, False, "3600"),
        (1234567.5, 3, False, "1234568"),
        (0.123456789, 3, False, "0.123"),
        (0.5, 3, True, "+0.5"),
        (-2e-7, 3, True, "-0.0000002"),
        (-0.0, 3, False, "0"),
    ],
)
def test_plain_numbers(value: float, digits: int, signed: bool, text: str) -> None:
    assert plain(value, digits, signed=signed) == text
