"""The client's models say what mleredux's own say, and outlive newer servers."""

from __future__ import annotations

import dataclasses
import inspect
from datetime import UTC, datetime
from typing import Any

import mleredux.models as core
import mleredux.models.formats as formats
import mleredux.models.rollout as core_rollout
import mleredux_client.formats as client_formats
import mleredux_client.models as client
import pytest
from mleredux._core.sandboxes.timeline import Sample
from mleredux.models.run import State

SAME = [
    (getattr(core, name), getattr(client, name))
    for name in (
        "Report",
        "HostUse",
        "Ledger",
        "LlmUse",
        "VersionScore",
        "Event",
        "Artifact",
        "Verdict",
        "Evidence",
        "Verification",
        "ResultVerdict",
    )
] + [
    (getattr(core_rollout, name), getattr(client, name))
    for name in (
        "Trajectory",
        "Step",
        "AgentInfo",
        "ToolCall",
        "Observation",
        "ObservationResult",
        "Metrics",
        "FinalMetrics",
        "ContentPart",
    )
]
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
    ledger=core.Ledger(llm=core.LlmUse(models=("m",))),
)


@pytest.mark.parametrize(("ours", "theirs"), SAME, ids=lambda kind: kind.__name__)
def test_models_have_the_fields_of_the_core_and_the_same_are_required(ours: Any, theirs: Any) -> None:
    def fields(model: Any) -> dict[str, bool]:
        return {name: field.is_required() for name, field in model.model_fields.items()}

    expected = fields(ours)
    if ours is core_rollout.Trajectory:
        expected["schema_version"] = True  # every document has one; only who writes has a default
    assert fields(theirs) == expected


def test_samples_have_the_fields_of_the_core() -> None:
    assert list(client.Sample.model_fields) == [field.name for field in dataclasses.fields(Sample)]


def test_final_states_are_those_of_the_core() -> None:
    assert {str(state): client.State(state).final for state in State} == {str(state): state.final for state in State}


def test_a_report_is_the_same_after_its_way_through_json() -> None:
    read = client.Report.model_validate_json(REPORT.model_dump_json())
    assert read.medal == REPORT.medal == "gold"
    assert read.model_dump(mode="json") == REPORT.model_dump(mode="json")


def test_a_report_is_shown_the_same_here_and_there() -> None:
    for name in ("Shown", "facts", "_Attributes", "_part", "text", "duration"):
        ours, copied = (inspect.getsource(getattr(module, name)) for module in (formats, client_formats))
        assert copied == ours, f"copy {name} of core's formats.py to the client's"
    assert client_formats.TONES == formats.TONES
    shown = dict(formats.facts(REPORT))
    assert shown["score"] == "0.99000 (accuracy)" and shown["medal"] == "gold" and "note" not in shown
    assert dict(client_formats.facts(client.Report.model_validate(REPORT.model_dump()))) == shown


def test_what_a_newer_server_says_is_kept_not_refused() -> None:
    newer = {**REPORT.model_dump(mode="json"), "carbon": {"grams": 3}}
    assert client.Report.model_validate(newer).model_extra == {"carbon": {"grams": 3}}
    run = client.RunRecord.model_validate({"id": "r", "task": "t", "agent": "a", "status": "paused", "moon": "full"})
    assert (client.State(run.status), client.State(run.status).final) == ("paused", False)


def test_models_are_values() -> None:
    with pytest.raises(ValueError, match="frozen"):
        client.Verdict(valid=True, message="Fine.").valid = False  # type: ignore[misc]
