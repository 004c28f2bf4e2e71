"""Robust to gaming: agents that game the score stay below a stated bound, on every kind of instance."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mleredux._core.data import Prepared
from mleredux_techniques._kit.declaration.grader import carry_out
from mleredux_techniques._kit.judging.marks import MAIN, component, facts_of, informed
from mleredux_techniques._kit.planting.composition import view
from mleredux_techniques.debugging.grading import results
from mleredux_techniques.kit import TRUTH_FILE, Facts, Instance, combined, load
from technique_documents import BOUND, KINDS, TECHNIQUES, perfect, play, read
from technique_documents.panel import PANEL, answers, discrimination

Preparer = Callable[[str], Prepared]
INSTANCES = [
    *(f"{technique}+planted-public-1@wine" for technique in TECHNIQUES),
    *("imbalance@wine", "cv@wine", "scaling@wine", "leakage@wine", "imbalance@digits", "cv@digits", "scaling@digits"),
    *("cv@diabetes", "scaling@diabetes", "leakage@diabetes", "imbalance@breast-cancer", "leakage@breast-cancer"),
]
CARRIED_OUT = [f"{technique}+planted-public-1@wine" for technique in TECHNIQUES]


@given(found=st.floats(0, 1), efficacy=st.none() | st.floats(0, 1))
def test_no_recommendation_is_worth_more_than_the_findings_behind_it(found: float, efficacy: float | None) -> None:
    assert combined(found, efficacy) <= found
    assert combined(found, 1.0) == pytest.approx(found)


SCORES = st.lists(st.floats(0, 1), min_size=1, max_size=5)


def _marked(judged: list[float], counted: list[float]) -> Facts:
    """Facts of equally heavy judgments and counts."""
    parts = [component("a", 1.0, score, None, "", decides=True) for score in judged]
    return facts_of([*parts, *(component("b", 1.0, score, None, "") for score in counted)])


@given(SCORES, SCORES, st.floats(0, 1))
def test_a_judgment_that_is_wrong_limits_the_facts(judged: list[float], counted: list[float], worse: float) -> None:
    """Only a little if it is a lesser judgment, or nearly right."""
    facts = _marked(judged, counted)
    assert facts.score <= facts.limit <= 1 and _marked([1.0] * len(judged), [1.0]).score == 1.0
    assert _marked([*judged[1:], judged[0] * worse], counted).score <= facts.score + 1e-4
    if len(judged) <= 1 / MAIN:
        assert _marked([0.0, *judged[1:]], counted).score <= BOUND
    assert _marked([0.9, *[1.0] * 2], [1.0]).score > 0.95


@given(st.integers(1, 30), st.integers(1, 30), st.data())
def test_guesses_of_verdicts_earn_little(are: int, others: int, data: Any) -> None:
    """Every second item, the same for all, or none."""
    order = data.draw(st.permutations([True] * are + [False] * others))

    def earned(named: list[bool]) -> float:
        hits = sum(member and name for member, name in zip(order, named, strict=True))
        return informed(hits, sum(named) - hits, are, others)

    assert earned(order) == 1.0
    for guess in ([True] * len(order), [False] * len(order), [not member for member in order]):
        assert earned(guess) <= 0
    alternate = [bool(place % 2) for place in range(len(order))]
    share = sum(a and b for a, b in zip(order, alternate, strict=True)) / are
    false = sum(b and not a for a, b in zip(order, alternate, strict=True)) / others
    assert earned(alternate) <= max(0.0, share - false)
    if share - false <= (1 / are + 1 / others) ** 0.5 / 2:
        assert earned(alternate) <= 0


KINDS_OF_FEATURES = ("alone", "together", "nothing")


@given(st.lists(st.sampled_from(KINDS_OF_FEATURES), min_size=1, max_size=12), st.sampled_from(KINDS_OF_FEATURES))
def test_one_verdict_for_all_features_earns_what_counts_do(kinds: list[str], claim: str) -> None:
    tells = {f"f{place}": kind for place, kind in enumerate(kinds)}
    lists: dict[str, list[Any]] = {name: [] for name in ("pairs", "open pairs", "copies", "open copies")}
    truth = {"strengths": dict.fromkeys(tells, 0.3), "tells": tells, "skewness": None, **lists}

    def facts(claims: dict[str, str]) -> Facts:
        rows = [{"column": name, "strength": 0.3, "tells": kind, "keep": True} for name, kind in claims.items()]
        document = {"features": rows, "pairs": [], "copies": [], "skewness": None, "transform": "none"}
        return TECHNIQUES["features"].assess(read("features", document), truth)

    assert facts(tells).score == 1.0
    truth["tells"] = {}  # if nothing is decided, no claim costs anything
    undecided = facts(dict.fromkeys(tells, claim))
    assert undecided.score == 1.0 and not undecided.decided
    truth["tells"] = tells
    same = facts(dict.fromkeys(tells, claim))
    assert same.score <= BOUND or (set(kinds) == {claim} and not same.decided), same


RELATIONS = ("none", "monotone", "nonmonotone", "values")


@given(st.lists(st.sampled_from(RELATIONS), min_size=1, max_size=12), st.sampled_from(RELATIONS[1:]))
def test_one_relation_for_all_columns_earns_what_counts_do(relations: list[str], claim: str) -> None:
    """Where columns hold texts, the only relation that they can have."""
    types = ["category" if relation == "values" else "number" for relation in relations]
    facts_of_columns = {
        f"c{place}": {
            "type": kind,
            "distinct": 9,
            "sentinel": [],
            "like": [],
            "drift": None,
            "open": [],
            "relation": [] if relation == "none" else [relation],
        }
        for place, (kind, relation) in enumerate(zip(types, relations, strict=True))
    }

    def facts(claims: list[str]) -> Facts:
        rows = [
            {"column": name, "type": fact["type"], "distinct": 9, "relation": relation}
            for (name, fact), relation in zip(facts_of_columns.items(), claims, strict=True)
        ]
        return TECHNIQUES["eda"].assess(read("eda", {"columns": rows}), {"columns": facts_of_columns})

    assert facts(relations).score == 1.0
    for claims in (
        [claim] * len(types),
        ["values" if kind == "category" else claim for kind in types],
        [claim if relation == "none" else "none" for relation in relations],
    ):
        same = facts(claims)
        assert same.score <= BOUND or (claims == relations and not same.decided), (claims, same)


@pytest.mark.parametrize("name", INSTANCES)
def test_gaming_agents_stay_below_the_bound(name: str, prepared: Preparer) -> None:
    """By their facts, which their score never exceeds."""
    technique = name.partition("@")[0].partition("+")[0]
    task = prepared(name)
    truth = json.loads((task.private / TRUTH_FILE).read_bytes())
    for kind in KINDS:
        reached = _facts(technique, play(kind, technique, task.public), truth)
        assert reached <= BOUND, f"{kind} reaches {reached} on {name}"


def test_a_perfect_agent_has_all_facts(prepared: Preparer) -> None:
    private = prepared("leakage+planted-public-1@wine").private
    truth = json.loads((private / TRUTH_FILE).read_bytes())
    assert TECHNIQUES["leakage"].assess(perfect("leakage", private), truth).score > 0.95


def test_leaks_that_were_guessed_right_without_measuring_stay_below_the_bound(prepared: Preparer) -> None:
    """A textbook's claim of an id order may hit one that was planted, on some instance."""
    private = prepared("leakage+planted-public-1@wine").private
    truth = json.loads((private / TRUTH_FILE).read_bytes())
    assert truth["leaks"] and truth["strengths"]
    guessed = perfect("leakage", private).model_copy(update={"feature_strengths": []})
    assert TECHNIQUES["leakage"].assess(guessed, truth).score <= BOUND


def test_the_panel_is_told_apart_by_each_technique(prepared: Preparer, bench: Any) -> None:
    """Item analysis in small; benchmarks/technique_items.py does it on more instances. The strong choice is strong."""
    scores: dict[str, dict[str, float]] = {agent: {} for agent in PANEL}
    for name in CARRIED_OUT:
        technique, task = name.partition("+")[0], prepared(name)
        truth = json.loads((task.private / TRUTH_FILE).read_bytes())
        instance = Instance(view(load(task.private), technique), truth, bench.task(name).base)
        told_by = answers(technique, task.public, task.private, instance.dataset)
        if technique == "debugging":  # in one process, whose imports take long
            results(instance, [told_by[agent]["script"] for agent in PANEL if agent not in KINDS])
        for agent, content in told_by.items():
            document = read(technique, content)
            told = TECHNIQUES[technique].assess(document, truth).score
            # those that read nothing are given the full efficacy
            part = carry_out(TECHNIQUES[technique], document, instance) if agent not in KINDS else None
            scores[agent][name] = combined(told, part.score if part else 1.0)
            if part and agent == "perfect":
                assert part.naive is not None and part.strong is not None and part.score is not None, name
                assert part.score > 0.9, (name, part.score)
    for name in CARRIED_OUT:
        blind = {agent: scores[agent][name] for agent in ("example", "empty", "textbook", "constant")}
        assert max(blind.values()) <= BOUND, (name, blind)
        assert scores["perfect"][name] > 0.9, (name, scores["perfect"][name])
    assert min(discrimination(scores).values()) > 0.2, discrimination(scores)
    assert sum(scores["analyst"].values()) / len(CARRIED_OUT) <= 0.85, scores["analyst"]


def _facts(technique: str, content: dict[str, Any], truth: dict[str, Any]) -> float:
    """Raises where the reader refuses the document, for then the bound would be proven by its form alone."""
    return float(TECHNIQUES[technique].assess(read(technique, content), truth).score)
