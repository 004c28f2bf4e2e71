"""The board of a class ranks students by the mean over its tasks, whatever the metrics."""

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


METRICS = ["wine", "digits", "diabetes"]  # lower is better, but in digits
SCORED = st.tuples(st.sampled_from("abcdef"), st.sampled_from(METRICS), st.none() | st.integers(-9, 9))


@given(st.lists(SCORED, min_size=1), st.floats(0.01, 1000))
def test_the_unit_of_a_metric_does_not_matter_and_a_better_score_never_lowers_a_rank(asked: Any, unit: float) -> None:
    rows = [row(student, task, score) for student, task, score in asked]
    places = board(rows)
    scaled = [{**one, "score": None if one["score"] is None else one["score"] * unit} for one in rows]
    assert board(scaled) == places
    assert all(place.mean > 0 for place in places if place.graded), "a score is worth more than none"
    ranks = {place.student: place.rank for place in places}
    student, task, _ = asked[-1]
    best = 99 if task == "digits" else -99
    improved = {place.student: place.rank for place in board([*rows[:-1], row(student, task, best)])}
    assert improved[student] <= ranks[student]


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
