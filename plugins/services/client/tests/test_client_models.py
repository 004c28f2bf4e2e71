"""The client's models are those of mleredux, and outlive newer servers."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import mleredux.models as core
import mleredux_client
import mleredux_rollout.models as core_rollout
import pytest
from mleredux.models import formats, read
from mleredux_client import UsageError
from mleredux_client.durations import seconds
from mleredux_client.models import account, base, catalogue, run
from pydantic import BaseModel, ValidationError

REPORT = core.Report(
    competition_id="digits",
    score=0.99,
    gold_threshold=0.985,
    any_medal=True,
    gold_medal=True,
    submission_exists=True,
    valid_submission=True,
    is_lower_better=False,
    created_at=datetime(2026, 11, 21, tzinfo=UTC),
    submission_path="submission.csv",
    task_version="1",
    metric="accuracy",
    ledger=core.Ledger(llm=core.LlmUse(models=("m",)), disk=core.DiskLimit(limit_mb=1, enforced_by="walk")),
    verdict=core.ResultVerdict(evidence=(core.Evidence(kind="jump", level="suspicious", why="Odd."),)),
)


TRAJECTORY: dict[str, Any] = {
    "schema_version": "ATIF-v1.8",
    "agent": {"name": "a", "version": "1"},
    "steps": [
        {"step_id": 1, "source": "user", "message": [{"type": "text", "text": "Solve it."}]},
        {
            "step_id": 2,
            "source": "agent",
            "message": "Yes.",
            "tool_calls": [{"tool_call_id": "c", "function_name": "run", "arguments": {}}],
            "observation": {"results": [{"source_call_id": "c", "content": "ok"}]},
            "metrics": {"prompt_tokens": 3},
        },
    ],
    "final_metrics": {"total_steps": 2},
}
MINUTE = timedelta(minutes=1)
DOCUMENTS = [(mleredux_client.Report, REPORT.model_dump(mode="json")), (core_rollout.Trajectory, TRAJECTORY)]


def places(document: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of each object in a document."""
    if isinstance(document, dict):
        yield place
    inner = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in inner:
        if isinstance(value, dict | list):
            yield from places(value, (*place, key))


def at(document: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        document = getattr(document, str(key)) if isinstance(document, BaseModel) else document[key]
    return document


def test_there_are_no_copies() -> None:
    names = {
        name: getattr(module, name)
        for module in (mleredux_client, base, account, catalogue, run)
        for name in {*vars(module), *getattr(module, "__all__", ())}
    }
    models = {
        name: value for name, value in names.items() if isinstance(value, type) and issubclass(value, BaseModel | str)
    }
    same = {name for name in models if hasattr(core, name)}
    other = {name for name in same if models[name] is not getattr(core, name)}
    assert other == {"Agent", "Grader", "Model", "Report", "RunRecord", "State", "Task", "Technique"}, "as servers send"
    assert issubclass(mleredux_client.Report, core.Report)
    assert mleredux_client.Report.model_fields.keys() == core.Report.model_fields.keys()
    assert mleredux_client.Trajectory is core_rollout.Trajectory
    assert len(same) > 15


def test_final_states_are_those_of_the_core() -> None:
    assert {str(state): mleredux_client.State(state).final for state in core.State} == {
        str(state): state.final for state in core.State
    }


def test_a_report_is_the_same_after_its_way_through_json() -> None:
    received = mleredux_client.Report.model_validate_json(REPORT.model_dump_json())
    assert received.medal == REPORT.medal == "gold"
    assert received.model_dump(mode="json") == REPORT.model_dump(mode="json")


def test_a_report_is_shown_the_same_here_and_there() -> None:
    shown = dict(formats.facts(REPORT))
    assert shown["score"] == "0.99000 (accuracy)" and shown["medal"] == "gold" and "note" not in shown
    assert dict(formats.facts(mleredux_client.Report.model_validate(REPORT.model_dump()))) == shown


@pytest.mark.parametrize(("model", "document"), DOCUMENTS, ids=["report", "trajectory"])
def test_fields_of_newer_servers_are_kept_wherever_they_are(model: type[BaseModel], document: dict[str, Any]) -> None:
    free = {"details", "withheld", "arguments", "refused_fields", "extra"}
    objects = [place for place in places(document) if not free & set(place)]
    assert len(objects) >= 5
    for place in objects:
        newer = copy.deepcopy(document)
        at(newer, place)["carbon"] = {"grams": 3}
        received = read(model, newer)
        assert at(received, place).carbon == {"grams": 3}, place
        with pytest.raises(ValidationError):
            model.model_validate(newer)  # as core reads its own files


@pytest.mark.parametrize(
    ("model", "document", "place"),
    [
        (mleredux_client.Report, DOCUMENTS[0][1], ("verdict", "status")),
        (mleredux_client.Report, DOCUMENTS[0][1], ("verdict", "evidence", 0, "level")),
        (mleredux_client.Report, DOCUMENTS[0][1], ("ledger", "disk", "enforced_by")),
        (core_rollout.Trajectory, TRAJECTORY, ("schema_version",)),
        (core_rollout.Trajectory, TRAJECTORY, ("steps", 1, "source")),
    ],
    ids=lambda value: value[-1] if isinstance(value, tuple) else "",
)
def test_texts_of_newer_servers_are_kept_where_there_is_a_list_of_them(
    model: type[BaseModel], document: dict[str, Any], place: tuple[Any, ...]
) -> None:
    newer = copy.deepcopy(document)
    at(newer, place[:-1])[place[-1]] = "unheard-of"
    if place[-1] == "source":  # of a source that is not known, nothing is
        newer["steps"][1] = {"step_id": 2, "source": "unheard-of", "message": "Yes."}
    assert at(read(model, newer), place) == "unheard-of"
    with pytest.raises(ValidationError):
        model.model_validate(newer)
    at(newer, place[:-1])[place[-1]] = 7
    with pytest.raises(ValidationError):
        read(model, newer)


def test_a_state_of_a_newer_server_is_not_final() -> None:
    record = mleredux_client.RunRecord.model_validate(
        {"id": "r", "task": "t", "agent": "a", "status": "paused", "moon": "full"}
    )
    assert record.model_extra == {"moon": "full"}
    assert (mleredux_client.State(record.status), mleredux_client.State(record.status).final) == ("paused", False)


def test_responses_of_older_servers_need_only_the_fields_that_identify_them() -> None:
    record = read(mleredux_client.RunRecord, {"id": "r", "task": "t", "agent": "a", "status": "done"})
    assert (record.seed, record.pinned, record.labels, record.sandbox, record.created_at) == (0, False, {}, None, None)
    assert record.labels is not read(mleredux_client.RunRecord, record.model_dump()).labels
    assert read(run.SubmissionRecord, {"id": "s", "task": "t", "status": "unheard-of"}).status == "unheard-of"
    for model in (mleredux_client.RunRecord, run.BuildRecord, account.User, catalogue.Task, run.QueuePlace):
        with pytest.raises(ValidationError):
            read(model, {})


@pytest.mark.parametrize(
    ("value", "expected"),
    [(90, 90), (0, 0), ("0s", 0), ("90", 90), (" 1h30m ", 5400), ("1.5H", 5400), ("7d", 604800), (MINUTE, 60)],
)
def test_durations(value: Any, expected: float) -> None:
    assert seconds(value) == expected


@pytest.mark.parametrize("value", ["", "soon", "-3s", "1h 30", "1e3", "∞", True, None, [], "5 minutes"])
def test_other_values_are_no_durations(value: Any) -> None:
    with pytest.raises(UsageError, match=r"is not a duration\. Use seconds"):
        seconds(value)


def test_models_are_values() -> None:
    with pytest.raises(ValueError, match="frozen"):
        mleredux_client.Verdict(valid=True, message="Fine.").valid = False  # type: ignore[misc]
