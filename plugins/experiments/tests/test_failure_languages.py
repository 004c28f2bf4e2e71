"""The rules know errors of programs in many languages, also repeated, and agents' own words on why they end."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mleredux_experiments.results.sources import read_run

sys.path.insert(0, str(Path(__file__).parent / "failures"))
from languages import CASES
from logs import cause_of, written

META: dict[str, Any] = {
    "signal": None, "ended_by": None, "seconds": 5, "time_limit_seconds": 3600, "searches": False, "metric": "rmse",
    "higher_is_better": False,
}  # fmt: skip
MISSING = {"exists": False, "valid": False, "message": "no submission.csv"}
INVALID = {"exists": True, "valid": False, "message": "columns ['a'] instead of ['b']"}


@pytest.mark.parametrize("name", CASES)
def test_the_cause_is_found(name: str, add_run: Callable[..., Path]) -> None:
    cause, log, code = CASES[name]
    meta = META | {"exit_code": code, "submission": INVALID if cause == "invalid-submission" else MISSING}
    findings = read_run(written(add_run, 0, meta, log), rollouts=True).findings or ()
    assert cause_of(next((one for one in findings if not one.overcome), None)) == cause, findings
