"""Clean tasks give no findings, whatever the seed, the number of classes, or the kind of target."""

from __future__ import annotations

import importlib.util
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
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


@pytest.mark.parametrize(("rows", "classes", "regression"), [(1400, 8, False), (300, 2, False), (480, 5, True)])
def test_none_of_many_honest_features_is_a_leak_by_chance(
    make_toy: Any, tmp_path: Path, rows: int, classes: int, regression: bool
) -> None:
    """In small samples, the most extreme of many features loses skill, or is about as rare as what is reported."""
    for seed in range(2):
        toy = make_toy(tmp_path / str(seed), seed, rows=rows, classes=classes, regression=regression)
        rng = np.random.default_rng(seed)
        for name, label in (("train", toy.train["label"].to_numpy()), ("test", toy.label)):
            codes = np.argsort(np.argsort(label)) * classes // len(label) if regression else label
            columns = {}
            for number in range(60):
                other = rng.integers(classes, size=len(codes))
                columns[f"feature {number}"] = np.where(rng.random(len(codes)) < 0.3, codes, other) + rng.random(
                    len(codes)
                )
                rare = (codes == number % classes) & (rng.random(len(codes)) < 0.045)
                columns[f"pixel {number}"] = rare * rng.integers(1, 9, len(codes))
            setattr(toy, name, pd.concat([getattr(toy, name), pd.DataFrame(columns)], axis=1))
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
