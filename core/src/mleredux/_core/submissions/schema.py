"""The submission schema of a task, read off its sample submission."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from mleredux._core.models import Column, SubmissionSchema, Task
from mleredux._core.models.schema import ColumnType
from mleredux._core.submissions.documents import name_of
from mleredux._core.submissions.validation import as_number
from mleredux.errors import TaskBroken

SCHEMA_FILE = "schema.json"
IDS_FILE = "ids.csv"
_BOOLEAN = frozenset({"true", "false"})


def write_schema(task: Task, public: Path, folder: Path) -> SubmissionSchema:
    """Write `schema.json` (and `ids.csv`) of a prepared task into a folder, from public files alone.

    Raises:
        TaskBroken: The sample submission is missing or does not fit the declaration.
    """
    folder.mkdir(parents=True, exist_ok=True)
    schema = _make_schema(task, public, folder)
    (folder / SCHEMA_FILE).write_text(schema.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return schema


def read_schema(folder: Path) -> SubmissionSchema:
    """The schema in a folder, its `ids` made absolute."""
    schema = SubmissionSchema.model_validate_json((folder / SCHEMA_FILE).read_bytes())
    return schema if schema.ids is None else schema.model_copy(update={"ids": folder / schema.ids})


def _make_schema(task: Task, public: Path, folder: Path) -> SubmissionSchema:
    submission = task.submission
    schema = SubmissionSchema(
        task=task.id, task_version=task.version, file=submission.file, extra_columns=submission.extra_columns
    )
    if submission.document is not None:
        form = submission.document.model_json_schema()
        return schema.model_copy(update={"json_schema": form, "document": name_of(submission.document)})
    if submission.sample is None or not submission.file.endswith(".csv"):
        return schema
    sample = public / submission.sample
    if not sample.is_file():
        raise TaskBroken(f"Task {task.id} prepared no {submission.sample} among its public files.")
    csv.field_size_limit(1 << 30)
    with sample.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        header = next(rows, [])
        missing = [name for name in submission.id_columns if name not in header]
        if missing:
            raise TaskBroken(f"{submission.sample} of task {task.id} lacks the id columns {', '.join(missing)}.")
        id_positions = [header.index(name) for name in submission.id_columns]
        fixed = bool(id_positions) and submission.ids_fixed
        types = _Types(header, submission.types)
        with (folder / IDS_FILE).open("w", encoding="utf-8", newline="") as ids:
            writer = csv.writer(ids, lineterminator="\n")
            writer.writerow(submission.id_columns)
            count = 0
            for row in types.watch(rows):
                count += 1
                if fixed:
                    writer.writerow([row[position] for position in id_positions])
    if not fixed:
        (folder / IDS_FILE).unlink()
    wanted = submission.target_columns or tuple(name for name in header if name not in submission.id_columns)
    columns = tuple(
        Column(
            name=name,
            role="id" if name in submission.id_columns else "target",
            type=types.of(name),
            nullable=types.nullable(name),
        )
        for name in header
        if name in submission.id_columns or name in wanted
    )
    return schema.model_copy(
        update={
            "columns": columns,
            "rows": count if submission.ids_fixed else None,
            "ids": Path(IDS_FILE) if fixed else None,
        }
    )


class _Types:
    """Column types, found while the sample is read once."""

    def __init__(self, header: list[str], declared: dict[str, ColumnType]) -> None:
        self.header, self.declared = header, declared
        self.number = dict.fromkeys(header, True)
        self.boolean = dict.fromkeys(header, True)
        self.empty = dict.fromkeys(header, False)

    def watch(self, rows: Iterator[list[str]]) -> Iterator[list[str]]:
        for row in rows:
            if not row:
                continue
            if len(row) != len(self.header):
                raise TaskBroken(f"The sample submission has a row with {len(row)} of {len(self.header)} cells.")
            for name, cell in zip(self.header, row, strict=True):
                if cell == "":
                    self.empty[name] = True
                    continue
                if self.boolean[name] and cell.lower() not in _BOOLEAN:
                    self.boolean[name] = False
                if self.number[name] and as_number(cell.strip()) is None:
                    self.number[name] = False
            yield row

    def of(self, name: str) -> ColumnType:
        if name in self.declared:
            return self.declared[name]
        if self.empty[name]:
            return "string"
        if self.boolean[name]:
            return "boolean"
        return "number" if self.number[name] else "string"

    def nullable(self, name: str) -> bool:
        return self.empty[name]
