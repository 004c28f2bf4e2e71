"""The submission schema: everything that validation needs, without the answers."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Literal

from mleredux.models.base import Model
from mleredux.models.formats import is_visible

ColumnType = Literal["integer", "number", "boolean", "string"]


class Column(Model):
    """One column of a submission."""

    name: str
    """The column's name in the header."""
    role: Literal["id", "target"]
    """`id` identifies rows; `target` is scored."""
    type: ColumnType = "string"
    """The type of the values."""
    nullable: bool = False
    """Whether values may be missing."""


class SubmissionSchema(Model):
    """Columns, ids and types of a well-formed submission, and reference data for the task's grader."""

    form: int = 1
    """Version of this model that wrote the file."""

    task: str
    """Id of the task."""
    task_version: str
    """The version of the task."""
    file: str = "submission.csv"
    """The expected file name."""
    columns: tuple[Column, ...] = ()
    """The expected columns, in order."""
    rows: int | None = None
    """Exact number of rows, if ids are fixed."""
    ids: Path | None = None
    """A CSV with the id columns, in the order of the sample submission; relative to the schema's own folder."""
    reference: Path | None = None
    """The file against which the task's grader checks a submission, in the schema's own folder; None if only columns,
    ids and types are checked."""
    public: Path | None = None
    """For a program: the folder of public files that contains the sample inputs for checking it."""
    extra_columns: bool = True
    """Whether other columns are permitted, in which case they are ignored."""
    json_schema: dict[str, object] | None = None
    """The JSON schema, for a submission that is a JSON document."""
    document: str | None = None
    """The pydantic model from which the JSON schema is generated, as `module:name`."""


class Verdict(Model):
    """The result of validation: whether a submission is well-formed; never its score."""

    valid: bool
    """Whether the submission is well-formed."""
    message: str
    """One fixed sentence, which may name columns and row numbers of the submission, but never values of the answers."""
    seconds: float = 0.0
    """CPU seconds spent on executing the submission, if it is a program."""


_MARKS = {b"\xff\xfe\0\0": "UTF-32", b"\0\0\xfe\xff": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


def other_encoding(start: bytes) -> str | None:
    """Return the encoding, other than UTF-8, that the byte order mark at the start of a file declares; else None."""
    return next((name for mark, name in _MARKS.items() if start.startswith(mark)), None)


def refuse_alike(header: Iterable[str], names: Collection[str]) -> None:
    """Check that no other column is named like a required one but for case, spaces and invisible characters.

    Raises:
        InvalidSubmission: A column is, so it is not clear which of the two is the submission.
    """
    from mleredux.errors import InvalidSubmission

    required = {_bare(name): name for name in names}
    for column in header:
        if (name := required.get(_bare(column), column)) != column and column not in names:
            raise InvalidSubmission(f"The submission has the columns {name!r} and {column!r}; keep one of them.")


def _bare(name: str) -> str:
    return "".join(filter(is_visible, name.casefold()))
