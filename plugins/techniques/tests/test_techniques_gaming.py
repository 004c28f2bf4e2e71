"""Robust to gaming: agents that game the score stay below a stated bound, on every kind of instance."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mleredux._core.data import Prepared
from mleredux._core.models import GradingInput
from mleredux_techniques.kit import TRUTH_FILE, combined, score
from technique_documents import BOUND, KINDS, TECHNIQUES, perfect, play, read

Preparer = Callable[[str], Prepared]
INSTANCES = [
    *(
        f"{technique}+planted-{seed}@{base}"
        for technique in TECHNIQUES
        for base in ("shop", "wine")
        for seed in (1, 2, 3)
    ),
    *(f"{technique}+planted-4@diabetes" for technique in TECHNIQUES if technique != "imbalance"),
    *("imbalance@wine", "cv@wine", "scaling@wine", "leakage@wine", "imbalance@digits", "cv@digits", "scaling@digits"),
    *("cv@diabetes", "scaling@diabetes", "leakage@diabetes", "imbalance@breast-cancer", "leakage@breast-cancer"),
]
CARRIED_OUT = [
    f"{technique}+planted-1@{'wine' if technique == 'imbalance' else 'diabetes'}" for technique in TECHNIQUES
]


@given(found=st.floats(0, 1), efficacy=st.none() | st.floats(0, 1))
def test_no_recommendation_is_worth_more_than_the_findings_behind_it(found: float, efficacy: float | None) -> None:
    assert combined(found, efficacy) <= found
    assert combined(found, 1.0) == pytest.approx(found)


@pytest.mark.parametrize("name", INSTANCES)
def test_gaming_agents_stay_below_the_bound(name: str, prepared: Preparer) -> None:
    """By their facts, which their score never exceeds."""
    technique = name.partition("@")[0].partition("+")[0]
    task = prepared(name)
    truth = json.loads((task.private / TRUTH_FILE).read_bytes())
    for kind in KINDS:
        reached = _facts(technique, play(kind, technique, task.public), truth)
        assert reached <= BOUND, f"{kind} reaches {reached} on {name}"


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_perfect_agent_has_all_facts(seed: int, prepared: Preparer) -> None:
    private = prepared(f"leakage+planted-{seed}@shop").private
    truth = json.loads((private / TRUTH_FILE).read_bytes())
    assert TECHNIQUES["leakage"].assess(perfect("leakage", private), truth).score > 0.95


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_leaks_that_were_guessed_right_without_measuring_stay_below_the_bound(seed: int, prepared: Preparer) -> None:
    """A textbook's claim of an id order may hit one that was planted, on some instance."""
    private = prepared(f"leakage+planted-{seed}@shop").private
    truth = json.loads((private / TRUTH_FILE).read_bytes())
    assert truth["leaks"] and truth["strengths"]
    guessed = perfect("leakage", private).model_copy(update={"feature_strengths": []})
    assert TECHNIQUES["leakage"].assess(guessed, truth).score <= BOUND


@pytest.mark.parametrize("name", CARRIED_OUT)
def test_graded_whole_they_stay_below_it_too_and_a_perfect_agent_near_one(
    name: str, prepared: Preparer, bench: Any
) -> None:
    technique = name.partition("@")[0].partition("+")[0]
    task = prepared(name)
    given_input = GradingInput(task.private, task.private, bench.task(name), {})
    assert score(TECHNIQUES[technique], perfect(technique, task.private), given_input).value > 0.9
    document = read(technique, play("textbook", technique, task.public))
    assert score(TECHNIQUES[technique], document, given_input).value <= BOUND


def _facts(technique: str, content: dict[str, Any], truth: dict[str, Any]) -> float:
    """Raises where the reader refuses the document, for then the bound would be proven by its form alone."""
    return float(TECHNIQUES[technique].assess(read(technique, content), truth).score)
