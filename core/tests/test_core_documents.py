"""Submissions that are JSON documents: what is wrong is one sentence that names the field; nothing gets past."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any, Literal

import pytest
from mleredux._core.submissions.documents import find_model, read_document
from mleredux._core.submissions.schema import read_schema, write_schema
from mleredux._core.submissions.validation import validate, validate_below
from mleredux.errors import InvalidSubmission, TaskBroken
from mleredux.models import Submission, SubmissionSchema, Task
from pydantic import BaseModel, ConfigDict, Field


class Step(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
    name: Literal["fit", "predict"]
    rows: int = Field(ge=0)


class Plan(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
    ratio: float
    steps: list[Step]


GOOD = {"ratio": 1.5, "steps": [{"name": "fit", "rows": 3}]}


@pytest.fixture
def schema(tmp_path: Path, toy: Any) -> SubmissionSchema:
    submission = Submission(file="plan.json", sample=None, document=Plan)
    task: Task = toy.task().model_copy(update={"submission": submission})
    write_schema(task, tmp_path, tmp_path / "schema")
    return read_schema(tmp_path / "schema")


def test_the_schema_publishes_the_form_and_names_the_model(schema: SubmissionSchema) -> None:
    assert schema.json_schema is not None
    assert schema.json_schema["required"] == ["ratio", "steps"]
    assert schema.document is not None
    assert schema.document.endswith(":Plan")


def test_a_good_document_is_well_formed(schema: SubmissionSchema, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(json.dumps(GOOD))
    assert validate_below(schema, tmp_path).message == "plan.json is well-formed."
    assert read_document(Plan, tmp_path / "plan.json").steps[0].rows == 3


BAD = {
    "": "is empty",
    "[1": "is not valid JSON",
    "[1]": "must contain one JSON object",
    '{"ratio": NaN, "steps": []}': "is not valid JSON",
    '{"ratio": 1e999, "steps": []}': "ratio",
    '{"ratio": 1, "steps": [], "ratio": 2}': "'ratio' occurs twice",
    '{"ratio": 1, "steps": [{"name": "fit", "rows": 1, "rows": 2}]}': "'rows' occurs twice",
    '{"ratio": "1", "steps": []}': "ratio: Input should be a valid number",
    '{"ratio": 1, "steps": [{"name": "guess", "rows": 1}]}': "steps[0].name: Input should be 'fit' or 'predict'",
    '{"ratio": 1, "steps": [{"name": "fit", "rows": -1}]}': "steps[0].rows: Input should be greater than",
    '{"ratio": 1, "steps": [], "more": 1}': "more: Extra inputs are not permitted",
    '{"ratio": 1}': "steps: Field required",
    '{"ratio": ' + "[" * 5000 + "]" * 5000 + ', "steps": []}': "is not valid JSON",
    '{"ratio": ' + "9" * 5000 + ', "steps": []}': "plan.json",
    "\udcff{}": "is not valid JSON",
    '{"ratio": 1, "steps": []}' + " " * (1 << 20): "is larger than 1 MiB",
}


@pytest.mark.parametrize("text", BAD, ids=[f"{number}" for number in range(len(BAD))])
def test_what_is_wrong_is_said_in_one_sentence(schema: SubmissionSchema, tmp_path: Path, text: str) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    verdict = validate(schema, path)
    assert not verdict.valid
    assert BAD[text] in verdict.message
    assert len(verdict.message) < 500
    with pytest.raises(InvalidSubmission, match=r"plan\.json"):
        read_document(Plan, path)


@pytest.mark.attack
def test_links_and_pipes_are_refused(schema: SubmissionSchema, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.json").write_text(json.dumps(GOOD))
    (tmp_path / "plan.json").symlink_to("elsewhere.json")
    assert "is a link" in validate_below(schema, tmp_path).message
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in validate(schema, tmp_path / "pipe").message


@pytest.mark.attack
def test_a_hostile_document_is_refused_at_once(schema: SubmissionSchema, tmp_path: Path) -> None:
    fields = ",".join(f'"{number}":0' for number in range(100_000))
    path = tmp_path / "plan.json"
    path.write_text("{" + fields + "}")
    started = time.process_time()
    assert "more problems" in validate(schema, path).message
    path.write_text("{" + fields + ',"99999":0}')
    assert "twice" in validate(schema, path).message
    assert time.process_time() - started < 30


def test_a_declaration_can_be_shown() -> None:
    shown = Submission(file="plan.json", sample=None, document=Plan).model_dump(mode="json")
    assert shown["document"] == f"{Plan.__module__}:Plan"


def test_a_model_that_is_gone_is_the_tasks_fault() -> None:
    for name in ("mleredux.models:Nothing", "no.such.module:Plan", "mleredux.models:CAUSES"):
        with pytest.raises(TaskBroken):
            find_model(name)
