"""The board of a class ranks students by the mean over its tasks."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from mleredux_techniques.pages import board


def row(student: str, task: str, score: float | None) -> dict[str, Any]:
    return {"student": student, "task": task, "score": score}


def test_students_are_ranked_by_their_mean_with_missing_tasks_as_zero() -> None:
    rows = [
        row("ann", "cv+planted-1@wine", 0.5),
        row("ann", "leakage+planted-8@wine", 1.0),
        row("bob", "cv+planted-2@wine", 0.9),
        row("cyn", "leakage+planted-3@wine", 0.9),
        row("dan", "cv+planted-4@wine", None),
    ]
    assert [(place.rank, place.student, place.mean, place.graded) for place in board(rows)] == [
        (1, "ann", 0.75, 2),
        (2, "bob", 0.45, 1),
        (2, "cyn", 0.45, 1),
        (4, "dan", 0.0, 0),
    ]


scores = st.none() | st.floats(0, 1)
rows = st.lists(
    st.builds(row, st.sampled_from("abcdef"), st.sampled_from(["cv@wine", "eda@wine", "cv@digits"]), scores)
)


@given(rows)
def test_everybody_has_one_place_and_ranks_count_who_is_better(rows: list[dict[str, Any]]) -> None:
    places = board(rows)
    assert sorted(place.student for place in places) == sorted({one["student"] for one in rows})
    assert all(place.rank == 1 + sum(other.mean > place.mean for other in places) for place in places)
    assert all(0 <= place.mean <= 1 for place in places)
