"""Laws that every registered grader keeps, on real files."""

from __future__ import annotations

import csv
import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import mleredux_graders
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mleredux.errors import InvalidSubmission, TaskBroken
from mleredux.models import GradingInput
from mleredux_tables.table import read_table

sys.path.insert(0, str(Path(__file__).parent))
from graders_cases import CASES, ROWS, WITHOUT_TABLE, Desk, assert_sentence, load

every_grader = pytest.mark.parametrize("name", sorted(CASES))
thorough = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def test_every_grader_has_a_case_here_and_is_what_the_index_says() -> None:
    assert sorted([*CASES, *WITHOUT_TABLE]) == sorted(mleredux_graders.GRADERS)
    for name in mleredux_graders.GRADERS:
        assert load(name).id == name


@every_grader
@given(seed=st.integers(0, 10_000))
@thorough
def test_a_perfect_submission_gets_the_perfect_score(name: str, seed: int, tmp_path: Path) -> None:
    desk = Desk(tmp_path, name, seed)
    assert desk.grader.perfect is not None
    assert desk.grade(desk.perfect) == pytest.approx(desk.grader.perfect, abs=desk.case.tolerance)


@every_grader
@given(seed=st.integers(0, 10_000))
@thorough
def test_row_order_never_matters_where_ids_align(name: str, seed: int, tmp_path: Path) -> None:
    desk = Desk(tmp_path, name, seed)
    rng = np.random.default_rng(seed)
    moved = desk.perfect[list(desk.case.targets)].to_numpy(dtype=object, copy=True)
    moved[: ROWS // 2] = rng.permutation(moved[: ROWS // 2])
    noisy = desk.perfect.assign(**dict(zip(desk.case.targets, moved.T, strict=True)))
    expected = desk.grade(noisy)
    shuffled = desk.grade(noisy.sample(frac=1, random_state=seed))
    assert shuffled == pytest.approx(expected, abs=1e-9, nan_ok=True)


def spoil(frame: pd.DataFrame, column: str, row: int, value: object) -> pd.DataFrame:
    spoiled = frame.astype({column: object})
    spoiled.loc[row, column] = value
    return spoiled


cells = st.one_of(
    st.none(),
    st.floats(allow_nan=True, allow_infinity=True),
    st.integers(-(10**30), 10**30),
    st.booleans(),
    st.text(max_size=12),
    st.sampled_from(["nan", "NA", "inf", "-inf", "1e400", "0x10", "1_0", "1 2 3", "a b", "5.0", " ", "-", "1 1", ":"]),
)


@every_grader
@given(data=st.data(), seed=st.integers(0, 50))
@thorough
def test_no_table_makes_a_grader_raise_anything_but_one_sentence(
    name: str, seed: int, data: st.DataObject, tmp_path: Path
) -> None:
    desk = Desk(tmp_path, name, seed)
    frame = desk.perfect
    for _ in range(data.draw(st.integers(1, 3))):
        how = data.draw(st.sampled_from(["cell", "column", "drop column", "drop row", "repeat row", "rename", "extra"]))
        column = data.draw(st.sampled_from(list(frame.columns))) if len(frame.columns) else None
        row = data.draw(st.integers(0, max(len(frame) - 1, 0)))
        if column is None:
            break
        if how == "cell" and len(frame):
            frame = spoil(frame, column, row, data.draw(cells))
        elif how == "column":
            frame = frame.assign(**{column: [data.draw(cells)] * len(frame)})
        elif how == "drop column":
            frame = frame.drop(columns=column)
        elif how == "drop row":
            frame = frame.drop(index=frame.index[row : row + 1]).reset_index(drop=True)
        elif how == "repeat row":
            frame = pd.concat([frame, frame.iloc[row : row + 1]], ignore_index=True)
        elif how == "rename":
            frame = frame.rename(columns={column: data.draw(st.text(max_size=5))})
        else:
            frame = frame.assign(extra=data.draw(cells))
        frame = frame.loc[:, ~frame.columns.duplicated()]
    try:
        score = desk.grade(frame)
    except InvalidSubmission as refusal:
        assert_sentence(refusal)
    else:
        assert isinstance(score, float)


@every_grader
@given(
    content=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda text: text.encode("utf-8", "ignore")))
)
@thorough
def test_no_bytes_make_a_grader_raise_anything_but_one_sentence(name: str, content: bytes, tmp_path: Path) -> None:
    desk = Desk(tmp_path, name, 0)
    (tmp_path / "submission.csv").write_bytes(content)
    with pytest.raises(InvalidSubmission) as caught:
        desk.grade_file(tmp_path / "submission.csv")
    assert_sentence(caught.value)


def bad_files(frame: pd.DataFrame, targets: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
    text = frame.to_csv(index=False)
    yield "empty", b""
    yield "header only", text.splitlines()[0].encode()
    yield from ((encoding, text.encode(encoding)) for encoding in ("utf-16", "utf-32"))
    yield "latin-1", text.replace("id", "\xe9").encode("latin-1")
    yield "binary", bytes(range(256)) * 40
    yield "unclosed quote", text.encode() + b'"'
    yield "ragged", text.encode() + b"1,2,3,4,5,6,7,8,9\n"
    yield "missing row", frame.iloc[1:].to_csv(index=False).encode()
    yield "unknown id", frame.assign(id=["?", *frame["id"][1:]]).to_csv(index=False).encode()
    yield "repeated id", frame.assign(id=[frame["id"][1], *frame["id"][1:]]).to_csv(index=False).encode()
    yield "empty id", frame.assign(id=[None, *frame["id"][1:]]).to_csv(index=False).encode()
    yield "missing column", frame.drop(columns=targets[0]).to_csv(index=False).encode()
    yield "wide header", b"a," * (1 << 20)


@every_grader
def test_known_kinds_of_bad_files_are_refused(name: str, tmp_path: Path) -> None:
    desk = Desk(tmp_path, name, 1)
    path = tmp_path / "submission.csv"
    for kind, content in bad_files(desk.perfect, desk.case.targets):
        path.write_bytes(content)
        with pytest.raises(InvalidSubmission) as caught:
            pytest.fail(f"{kind}: scored {desk.grade_file(path)}")
        assert_sentence(caught.value)
        assert not kind.startswith("utf") or f"encoded in {kind.upper()};" in str(caught.value)


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "accuracy", 1)
    desk.perfect.to_csv(tmp_path / "elsewhere.csv", index=False)
    link, folder, pipe, none = (tmp_path / kind for kind in ("link.csv", "folder.csv", "pipe.csv", "none.csv"))
    link.symlink_to(tmp_path / "elsewhere.csv")
    folder.mkdir()
    os.mkfifo(pipe)
    for path, word in ((link, "link"), (folder, "folder"), (pipe, "regular"), (none, "no submission")):
        with pytest.raises(InvalidSubmission, match=word):
            desk.grade_file(path)


def test_ten_million_rows_are_refused_in_one_sentence(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "accuracy", 1)
    path = tmp_path / "submission.csv"
    path.write_bytes(b"id,y\n" + b"r001,1\n" * 10_000_000)
    with pytest.raises(InvalidSubmission, match="10,000,000 rows; 24 are expected"):
        desk.grade_file(path)


def test_a_wrong_option_is_the_tasks_fault(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "accuracy", 1, colour="blue")
    with pytest.raises(TaskBroken, match="option 'colour' of metric"):
        desk.grade(desk.perfect)


def test_missing_answers_are_the_tasks_fault(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "accuracy", 1)
    (tmp_path / "answers.csv").unlink()
    with pytest.raises(TaskBroken, match="Prepare the task again"):
        desk.grade(desk.perfect)


def test_scores_keep_their_details(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "mae", 1)
    desk.perfect.to_csv(tmp_path / "submission.csv", index=False)
    given_input = GradingInput(tmp_path / "submission.csv", tmp_path, desk.task, {})
    score = desk.grader.score(given_input)
    assert not isinstance(score, float)
    assert score.details == {"columns": {"y": 0.0, "z": 0.0}}
    assert not math.isnan(score.value)


@every_grader
@pytest.mark.parametrize("start", ["", "\ufeff", "\n", "quoted"])
def test_a_column_that_counts_is_never_taken_from_two(name: str, start: str, tmp_path: Path) -> None:
    desk = Desk(tmp_path, name, 1)
    for column in (*desk.case.ids, *desk.case.targets):
        for places in ("last", "first"):
            twice = [desk.perfect, desk.perfect[[column]]]
            text = pd.concat(twice if places == "last" else twice[::-1], axis=1).to_csv(
                index=False, quoting=csv.QUOTE_ALL if start == "quoted" else csv.QUOTE_MINIMAL
            )
            (tmp_path / "twice.csv").write_text(text if start == "quoted" else start + text)
            with pytest.raises(InvalidSubmission, match="several columns") as refusal:
                desk.grade_file(tmp_path / "twice.csv")
            assert_sentence(refusal.value)


def test_names_that_only_look_numbered_are_names(tmp_path: Path) -> None:
    path = tmp_path / "submission.csv"
    path.write_text("id,a,a.1,b.1,c,c\n1,2,3,4,5,6\n")
    read_table(path).require(["id", "a", "a.1", "b.1"])
    with pytest.raises(InvalidSubmission, match="several columns named 'c'"):
        read_table(path).require(["id", "c"])
