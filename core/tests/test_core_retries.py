"""Runs that are tried again after failures of named causes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest
from mleredux.errors import MlereduxError, SandboxError
from mleredux.models import Cause, State
from mleredux.models.agent import RetriedCause


@pytest.mark.parametrize(
    ("agent", "cause", "tries"),
    [("crash", "agent_crashed", 2), ("hog", "out_of_memory", 1), ("fill", "out_of_disk", 3)],
)
def test_a_run_tries_again_as_often_as_it_was_asked_to_after_that_cause_only(
    toy: Any, agent: str, cause: str, tries: int
) -> None:
    run = toy.run(agent, limits={"retries": {cause: tries, "agent_timed_out": 9}})
    retries = [event.data for event in run.events() if event.type == "retry"]
    assert [(one["stage"], one["cause"]) for one in retries] == [("running", cause)] * tries
    assert (run.state, run.cause) == (State.FAILED, cause)
    assert len(list((run.path / "attempts").iterdir())) == tries, "what each attempt left is kept"
    assert run.report is not None


def test_an_attempt_that_succeeds_ends_the_retries(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox, started = toy.catalogue.sandbox("process"), []
    real = type(sandbox).start

    def start(self: Any, launch: Any) -> Any:
        started.append(launch)
        failing = replace(launch, command=("python", "-c", "raise SystemExit(3)"))
        return real(self, failing if len(started) < 3 else launch)

    monkeypatch.setattr(type(sandbox), "start", start)
    run = toy.run("copy", limits={"retries": {"agent_crashed": 5}})
    assert run.state is State.DONE and run.report.valid_submission and len(started) == 3
    assert run.outcome.exit_code == 0


def test_none_of_the_built_in_retry_is_left_where_the_number_is_zero(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox = toy.catalogue.sandbox("process")
    monkeypatch.setattr(type(sandbox), "start", lambda *_: (_ for _ in ()).throw(SandboxError("The engine is gone.")))
    for number in (0, 4):
        run = toy.run("copy", limits={"retries": {"environment_broke": number}})
        assert sum(event.type == "retry" for event in run.events()) == number


def test_a_cause_that_does_not_exist_is_refused_with_the_list(toy: Any) -> None:
    assert set(get_args(RetriedCause)) == set(Cause) - {Cause.CANCELLED}
    for wrong in ({"cancelled": 1}, {"oom": 2}, {"agent_crashed": -1}, {"agent_crashed": "often"}):
        with pytest.raises(MlereduxError, match=r"retries.*(agent_crashed.*task_broken|greater|integer)"):
            toy.run("copy", limits={"retries": wrong})
