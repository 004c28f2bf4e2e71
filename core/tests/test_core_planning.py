"""Requests become run plans, whoever makes them."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mleredux.errors import MlereduxError, NotGranted
from mleredux.models import Agent, Grants
from mleredux.models.request import Arm, Request
from mleredux.plugin.experiment import plan
from mleredux.plugin.host import provide_secrets
from mleredux_support.plans import plan_of

NAMES = st.lists(st.sampled_from("abcde"), min_size=1, max_size=5)


@given(
    tasks=NAMES,
    arms=NAMES,
    seeds=st.lists(st.integers(0, 3), max_size=4),
    order=st.sampled_from(["interleaved", "by_task"]),
)
def test_each_task_meets_each_arm_and_seed_once(
    tasks: list[str], arms: list[str], seeds: list[int], order: Any
) -> None:
    request = Request.matrix(tasks, arms, seeds, limits={}).model_copy(update={"order": order})
    cells = request.cells()
    assert len(cells) == len(set(cells))
    assert {(cell.task, cell.arm, cell.seed) for cell in cells} == set(product(tasks, arms, seeds or [0]))
    if order == "by_task":
        assert list(dict.fromkeys(cell.task for cell in cells)) == list(dict.fromkeys(tasks))


def test_runs_record_their_arm_only_in_an_experiment(toy: Any) -> None:
    arms = {"first": Arm(agent="copy", sandbox="process"), "second": Arm(agent="copy", sandbox="process", verify=True)}
    request = Request(tasks=("toy",), arms=arms, seeds=(4, 2))
    runs = plan(request, toy.catalogue)
    assert [(run.seed, run.verify) for run in runs] == [(4, False), (2, False), (4, True), (2, True)]
    assert {(run.arm, run.experiment) for run in runs} == {(None, None)}
    named = plan(request.model_copy(update={"experiment": "e"}), toy.catalogue)
    assert [run.arm for run in named] == ["first", "first", "second", "second"]
    assert {run.experiment for run in named} == {"e"}


def test_what_an_agent_gets_is_asked_once_for_each_arm(toy: Any) -> None:
    asked: list[str] = []

    def granted(agent: Agent, grants: Grants, network: str | None) -> tuple[Grants, str | None]:
        asked.append(agent.id)
        return grants, network

    request = Request.matrix(("toy",), ("copy", "versions"), (0, 1, 2), limits={}, sandbox="process")
    assert len(plan(request, toy.catalogue, granted=granted)) == 6
    assert asked == ["copy", "versions"]


def test_texts_of_tasks_come_before_the_text_of_all(toy: Any) -> None:
    arm = Arm(agent="copy", sandbox="process", contexts={"toy": "on toy", "*": "on all"})
    [run] = plan(Request(tasks=("toy",), arms={"a": arm}), toy.catalogue)
    assert run.context == "on toy"
    assert plan_of(toy.catalogue, "toy", "copy", sandbox="process", context="on all").context == "on all"


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"seed": -1}, r"^The seed is -1; seeds must be integers from 0 to 4294967295\."),
        ({"seed": 1.5}, r"^The seed is 1\.5; seeds must be integers"),
        ({"seed": "7"}, r"^The seed is '7'; seeds must be integers"),
        ({"seed": None}, r"^The seed is None; seeds must be integers"),
        ({"seed": 2**32}, r"^The seed is 4294967296"),
        ({"limits": {"cpus": 0}}, r"^The limit cpus is 0; it should be greater than 0\."),
        ({"limits": {"time_limit": "soon"}}, r"^The limit time_limit is 'soon'; 'soon' is not a valid duration; write"),
        ({"limits": {"memory_mb": "lots"}}, r"^The limit memory_mb is 'lots'; 'lots' is not a valid size; write"),
        ({"limits": {"pace": 1}}, r"^The limit pace is 1; Extra inputs are not permitted\."),
        ({"network": "wifi"}, r"^The request is not valid: network: Input should be 'none', 'gateway' or 'open'\."),
        ({"sandboxes": "process"}, r"^The request is not valid: sandboxes: "),
    ],
)
def test_an_invalid_request_is_refused_in_one_sentence(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(MlereduxError, match=sentence) as refused:
        Request.single("toy", "copy", **fields)
    assert "\n" not in str(refused.value)


def test_tools_at_paths_are_of_the_user_s_own_machine(toy: Any) -> None:
    with pytest.raises(NotGranted, match="is a path on another machine"):
        plan_of(toy.catalogue, "toy", "copy", sandbox="process", grants=Grants(tools=("./skill",)))


@pytest.mark.parametrize("field", ["pass_env", "secrets", "grants"])
def test_variables_that_are_not_set_are_refused_before_a_run_is_created(
    toy: Any, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("B_TOKEN", "A_TOKEN", "SET_BY_AGENT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PRESENT", "")
    names = ("PRESENT", "B_TOKEN", "A_TOKEN", "SET_BY_AGENT", "MLEREDUX_RUNS_DIR")
    agent = toy.catalogue.agent("copy").model_copy(update={"env": {"SET_BY_AGENT": "1"}})
    grants = Grants(variables=names[:-1]) if field == "grants" else Grants()
    if field != "grants":
        agent = agent.model_copy(update={field: names})
    monkeypatch.setattr(toy.catalogue, "agent", lambda *_: agent)
    request = Request(tasks=("toy",), arms={"arm": Arm(agent="copy", sandbox="process", grants=grants)})
    assert plan(request, toy.catalogue), "a server has its own secrets"
    with pytest.raises(MlereduxError, match="needs variables that are not set: A_TOKEN, B_TOKEN") as refused:
        plan(request, toy.catalogue, own_machine=True)
    assert "export A_TOKEN=" in str(refused.value.hint)
    with monkeypatch.context() as foreign:
        foreign.setattr("mleredux._core.planning.plans.is_foreign", lambda _: True)
        foreign.setattr("mleredux._core.planning.plans.check_grants", lambda *_: None)
        assert plan(request, toy.catalogue, own_machine=True), "their requests are listed, and may be optional"
    with provide_secrets({"A_TOKEN": "x"}):
        monkeypatch.setenv("B_TOKEN", "y")
        assert plan(request, toy.catalogue, own_machine=True)
