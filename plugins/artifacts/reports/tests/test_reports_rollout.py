"""Every run gets a valid rollout: the agent's own, one from its native logs, or a reconstructed one."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import mleredux._core.plugins.catalogue as catalogue
import pytest
from mleredux._core.store import Run
from mleredux.models import Agent
from mleredux_artifact_reports.rollouts import produce_rollout, stored_versions
from mleredux_rollout import (
    AgentInfo,
    Step,
    StepExtra,
    SubmissionFact,
    Trajectory,
    check_rollout,
    dump_rollout,
    read_rollout,
    run_extra,
    step_extra,
    text_of,
)


def own(**changes: Any) -> Trajectory:
    """A rollout that an agent might write."""
    steps = [
        Step(step_id=1, source="system", message="task"),
        Step(step_id=2, source="agent", message="try", extra=StepExtra(submission_version=2).as_extra()),
    ]
    return Trajectory(**{"agent": AgentInfo(name="mine", version="9"), "steps": steps, **changes})


def leave(run: Run, content: bytes) -> Path:
    path = run.output_dir / "rollout" / "trajectory.json"
    path.write_bytes(content)
    return path


def produced(run: Run) -> Trajectory:
    assert produce_rollout(run).path == "rollout.json"
    assert check_rollout(run.path / "rollout.json") == []
    return read_rollout(run.path / "rollout.json")


@pytest.fixture
def read_native() -> Iterator[list[Any]]:
    """A catalogue with an agent whose reader returns (or raises) the item of this list."""
    results: list[Any] = []

    class Known(catalogue.Catalogue):
        def agent(self, name: str) -> Agent:
            def reader(output: Path) -> Any:
                assert (output / "code" / "train.py").is_file()
                if isinstance(results[0], Exception):
                    raise results[0]
                return results[0]

            return Agent(id=name, title="", command=("true",), rollout_reader=reader)

    catalogue.set_current(Known())
    yield results
    catalogue.set_current(None)


def test_the_agents_own_rollout_is_used_with_the_facts_of_the_run(make_run: Any) -> None:
    run = make_run()
    left = leave(run, dump_rollout(own(notes="mine", extra={"other": 1})))
    before = left.read_bytes()
    trajectory = produced(run)
    facts = run_extra(trajectory)
    assert facts is not None
    assert (trajectory.agent.name, trajectory.notes, trajectory.session_id) == ("mine", "mine", run.id)
    assert trajectory.extra is not None and trajectory.extra["other"] == 1
    assert (facts.run, facts.task, facts.seed, facts.made_from) == (run.id, "no-such-task", 3, "agent")
    assert (facts.score, facts.medal, facts.state, facts.packages) == (0.97222, "silver", "done", {"mleredux": "0.1.0"})
    assert [(fact.version, fact.seconds, fact.score) for fact in facts.submissions] == [
        (1, 7.4, 0.9),
        (2, 19.4, 0.97222),
    ]
    assert left.read_bytes() == before


def test_ids_are_those_of_the_run_and_the_agents_own_are_kept_aside(make_run: Any) -> None:
    child = own(trajectory_id="child", session_id="its own", schema_version="ATIF-v1.7")
    ids = {"session_id": "always the same", "trajectory_id": "t", "schema_version": "ATIF-v1.5"}
    run = make_run()
    leave(run, dump_rollout(own(**ids, subagent_trajectories=[child])))
    trajectory = produced(run)
    assert (trajectory.session_id, trajectory.trajectory_id) == (run.id, run.id)
    assert trajectory.schema_version == "ATIF-v1.8"
    assert trajectory.extra is not None
    assert (trajectory.extra["session_id"], trajectory.extra["trajectory_id"]) == ("always the same", "t")
    (part,) = trajectory.subagent_trajectories or ()
    assert (part.session_id, part.trajectory_id, part.extra) == (run.id, "child", {"session_id": "its own"})
    without = make_run()
    assert (produced(without).session_id, produced(without).trajectory_id) == (without.id, without.id)


def test_test_scores_come_from_the_run_whatever_the_agent_claims(make_run: Any) -> None:
    steps = [
        Step(step_id=1, source="agent", message="", extra={"submission_version": 1, "score_after_run": 1.0}),
        Step(step_id=2, source="agent", message="", extra={"submission_version": 2, "score_after_run": 1.0}),
    ]
    run = make_run()
    leave(run, dump_rollout(own(steps=steps, extra={"mleredux": {"score": 1.0, "run": "fake"}})))
    trajectory = produced(run)
    assert [step_extra(step).score_after_run for step in trajectory.steps] == [0.9, 0.97222]
    facts = run_extra(trajectory)
    assert facts is not None and (facts.run, facts.score) == (run.id, 0.97222)


def test_native_logs_are_read_if_the_agent_wrote_no_rollout(make_run: Any, read_native: list[Any]) -> None:
    read_native.append(own())
    trajectory = produced(make_run())
    facts = run_extra(trajectory)
    assert facts is not None and facts.made_from == "native logs"
    assert trajectory.agent.name == "mine"


@pytest.mark.parametrize("result", [None, RuntimeError("broken log"), {"steps": []}])
def test_a_failing_reader_is_replaced_by_a_reconstruction(make_run: Any, read_native: list[Any], result: Any) -> None:
    read_native.append(result)
    trajectory = produced(make_run())
    facts = run_extra(trajectory)
    assert facts is not None and facts.made_from == "events"
    if result is not None:
        assert trajectory.notes is not None and "native logs could not be read" in trajectory.notes


def test_without_any_trace_one_is_reconstructed_in_chronological_order(make_run: Any) -> None:
    run = make_run()
    os.utime(run.output_dir / "code" / "train.py", (1795255203, 1795255203))  # 10:00:03
    trajectory = produced(run)
    told = [text_of(step.message) for step in trajectory.steps]
    wanted = [
        "# Digits",
        "The agent was started",
        "Wrote the code output/code/train.py",
        "Wrote version 1",
        "Requested validation",
    ]
    wanted += ["Wrote version 2", "Output of the agent.", "The run ended with state done"]
    assert [message.startswith(start) for message, start in zip(told, wanted, strict=True)] == [True] * len(wanted)
    validation = trajectory.steps[4]
    assert validation.tool_calls is not None and validation.observation is not None
    assert text_of(validation.observation.results[0].content) == "Submission is valid."
    scores = [step_extra(step).score_after_run for step in trajectory.steps]
    assert scores == [None, None, None, 0.9, None, 0.97222, None, None]
    log = trajectory.steps[6].observation
    assert log is not None
    assert text_of(log.results[0].content).splitlines() == [
        "reading 1,437 rows",
        "fold 5/5",
        "validation accuracy 0.9722",
        "\\xff\\xfe done",
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{", "is not JSON"),
        (b'{"agent": {}, "steps": []}', "$.agent: `name` is missing"),
        (dump_rollout(own()).replace(b'"agent",', b'"me",'), "must be 'system', 'user' or 'agent'"),
    ],
)
def test_an_invalid_rollout_is_kept_and_its_problems_are_reported(make_run: Any, content: bytes, said: str) -> None:
    run = make_run()
    left = leave(run, content)
    notes = produced(run).notes
    assert notes is not None
    assert "output/rollout/trajectory.json is not a valid rollout" in notes
    assert said in notes
    assert left.read_bytes() == content


def test_links_pipes_and_huge_files_are_not_read(make_run: Any, tmp_path: Path) -> None:
    secret = tmp_path / "answers.json"
    secret.write_bytes(dump_rollout(own(notes="the answers")))
    place = Path("rollout/trajectory.json")
    run = make_run()
    (run.output_dir / place).symlink_to(secret)
    assert "the answers" not in (produced(run).notes or "")
    (run.output_dir / place).unlink()
    (run.output_dir / "rollout").rmdir()
    (tmp_path / "elsewhere").mkdir()
    secret.rename(tmp_path / "elsewhere" / "trajectory.json")
    (run.output_dir / "rollout").symlink_to(tmp_path / "elsewhere")
    assert "the answers" not in (produced(run).notes or "")
    (run.output_dir / "rollout").unlink()
    (run.output_dir / "rollout").mkdir()
    os.mkfifo(run.output_dir / place)
    assert produced(run).agent.name == "no-such-agent"
    (run.output_dir / place).unlink()
    with (run.output_dir / place).open("wb") as file:
        file.truncate(1 << 40)
    assert "larger than the limit" in (produced(run).notes or "")


def test_environment_variables_are_never_in_it(make_run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    run = make_run()
    produce_rollout(run)
    assert "sk-very-secret" not in (run.path / "rollout.json").read_text(encoding="utf-8")


def test_a_run_that_ended_before_its_agent_started_has_a_rollout(make_run: Any) -> None:
    run = make_run(report=None)
    lines = (run.path / "events.jsonl").read_text(encoding="utf-8").splitlines()[:2]
    failed = {"stage": "preparing", "status": "failed", "cause": "task_broken", "message": "Raw data is missing."}
    lines.append(json.dumps({"seq": 2, "time": "2026-11-21T10:00:01Z", "type": "stage", "data": failed}))
    lines.append(
        json.dumps({"seq": 3, "time": "2026-11-21T10:00:01Z", "type": "state", "data": {"state": "producing"}})
    )
    (run.path / "events.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    trajectory = produced(run)
    facts = run_extra(trajectory)
    assert facts is not None and (facts.state, facts.cause, facts.score) == ("failed", "task_broken", None)
    assert text_of(trajectory.steps[-1].message) == "The run ended with state failed: Raw data is missing."


def test_versions_that_were_overwritten_before_they_were_stored_get_no_score() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)

    def at(seconds: float) -> datetime:
        return start + timedelta(seconds=seconds)

    steps = [
        Step(
            step_id=number,
            source="agent",
            message="",
            timestamp=at(seconds).isoformat(),
            extra={"submission_version": n},
        )
        for number, (n, seconds) in enumerate([(1, 0.1), (2, 2.0), (3, 7.6), (4, 9.9)], start=1)
    ]
    kept = [SubmissionFact(version=n, time=at(seconds), size=1) for n, seconds in [(1, 3.2), (2, 8.8)]]
    assert stored_versions(steps, kept) == {2: 1, 3: 2}
    kept.append(SubmissionFact(version=3, time=at(11.0), size=1))
    assert stored_versions(steps, kept) == {2: 1, 3: 2, 4: 3}
    assert stored_versions(steps[:2], kept) == {1: 1, 2: 2}, "fewer than stored: the agent's own numbers hold"
