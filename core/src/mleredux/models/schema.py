"""The submission schema: all that validation needs, without the answers."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from mleredux.models.base import Model

ColumnType = Literal["integer", "number", "boolean", "string"]


class Column(Model):
    """One column of a submission."""

    name: str
    role: Literal["id", "target"]
    type: ColumnType = "string"
    nullable: bool = False


class SubmissionSchema(Model):
    """Columns, ids and types of a well-formed submission, and the reference data of the task's grader."""

    form: int = 1
    """Version of this model that wrote the file."""

    task: str
    task_version: str
    file: str = "submission.csv"
    columns: tuple[Column, ...] = ()
    rows: int | None = None
    """Exact number of rows, if ids are fixed."""
    ids: Path | None = None
    """A CSV with the id columns, in the order of the sample; relative to the schema's own folder."""
    reference: Path | None = None
    """The file that the task's grader checks a submission against, in the schema's own folder; None if only columns,
    ids and types are checked."""
    public: Path | None = None
    """For a submission that is a program: the folder of public files, on whose sample inputs it is checked."""
    extra_columns: bool = True
    json_schema: dict[str, object] | None = None
    """For a submission that is a JSON document: its JSON schema."""
    document: str | None = None
    """The pydantic model it is generated from, `module:name`."""


class Verdict(Model):
    """The result of validation: whether a submission is well-formed, never its score."""

    valid: bool
    message: str
    """One fixed sentence; names columns and row numbers of the submission, never values of answers."""
    seconds: float = 0.0
    """Seconds on one processor that executing it took, if it is a program."""
