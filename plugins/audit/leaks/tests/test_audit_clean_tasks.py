"""Clean tasks give no findings, whatever the seed, the number of classes, or the kind of target."""

from __future__ import annotations

import importlib.util
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

_SPEC = importlib.util.spec_from_file_location("audit_toys", Path(__file__).parent / "conftest.py")
assert _SPEC is not None and _SPEC.loader is not None


@pytest.fixture(scope="module")
def make_toy() -> Any:
    import sys

    module = importlib.util.module_from_spec(_SPEC)
    sys.modules["audit_toys"] = module
    _SPEC.loader.exec_module(module)
    return module.make_toy


@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10**6),
    rows=st.sampled_from([40, 120, 600]),
    classes=st.integers(2, 12),
    regression=st.booleans(),
)
def test_nothing_is_found(make_toy: Any, seed: int, rows: int, classes: int, regression: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        toy = make_toy(Path(folder), seed, rows=rows, classes=classes, regression=regression)
        assert toy.audit().findings == ()


def test_a_strong_honest_feature_is_no_leak(make_toy: Any, tmp_path: Path) -> None:
    toy = make_toy(tmp_path, classes=2)
    for frame, label in ((toy.train, toy.train["label"]), (toy.test, toy.label)):
        frame["measure"] = frame["measure"] + 2 * label  # tells nine of ten rows
    assert toy.audit().findings == ()


def test_ids_that_occur_on_both_sides_by_accident_are_no_leak(make_toy: Any, tmp_path: Path) -> None:
    toy = make_toy(tmp_path)
    toy.train["id"] = range(len(toy.train))
    for frame in (toy.test, toy.answers, toy.sample):
        frame["id"] = range(len(frame))
    assert toy.audit().findings == ()


def test_times_and_tables_that_rows_refer_to_are_no_texts(make_toy: Any, tmp_path: Path) -> None:
    """A test row that begins when a training row does is no copy of it, and both may have the same license."""
    toy = make_toy(tmp_path, rows=120)
    for frame in (toy.train, toy.test):
        frame["began"] = [f"2020-09-{1 + n % 28:02d}T03:{n % 60:02d}:48.{n:03d}Z" for n in range(len(frame))]
    fields = ("url", "id", "name")
    toy.public.mkdir(parents=True)
    for name, order in (("test", fields), ("val", fields[::-1])):
        rows = [{"url": f"https://licenses.example/number/{n}", "id": n, "name": f"L{n}"} for n in range(6)]
        licenses = [{field: row[field] for field in order} for row in rows]
        (toy.public / f"{name}.json").write_text(json.dumps({"info": {"year": 2020}, "licenses": licenses}))
    assert toy.audit().findings == ()
