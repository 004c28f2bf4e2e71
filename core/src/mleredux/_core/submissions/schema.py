"""The submission schema of a task, derived from its sample submission."""

from __future__ import annotations

import csv
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from mleredux._core.store.files import write_atomically
from mleredux._core.submissions.validation import as_number, grader_of, validate
from mleredux.errors import InvalidSubmission, TaskBroken
from mleredux.models import Column, GradingInput, SubmissionSchema, Task
from mleredux.models.schema import ColumnType

SCHEMA_FILE = "schema.json"
IDS_FILE = "ids.csv"
REFERENCE_FILE = "reference.csv"
FORM = 2
_BOOLEAN = frozenset({"true", "false"})


def write_schema(task: Task, public: Path, folder: Path) -> SubmissionSchema:
    """Write `schema.json` (and `ids.csv` or `reference.csv`) of a prepared task into a folder.

    Everything but the reference is derived from public files. The reference is the sample submission with the grader's
    additions, such as image sizes or which rows are scored; it never reveals anything about the answers.

    Args:
        task: The prepared task.
        public: The folder of public files, next to the folder of private files.
        folder: The folder to write to.

    Returns:
        The schema, as returned by `read_schema`.

    Raises:
        TaskBroken: The sample submission is missing or does not fit the declaration.
    """
    folder.mkdir(parents=True, exist_ok=True)
    schema = make_schema(task, public, folder)
    if schema.ids is not None or schema.columns:
        grader = grader_of(task)
        if grader is not None and grader.check is not None:
            schema = schema.model_copy(update={"ids": None, "reference": Path(REFERENCE_FILE)})
            sample = public / (task.submission.sample or "")
            if grader.reference is None:
                shutil.copyfile(sample, folder / REFERENCE_FILE)
            else:
                inputs = GradingInput(sample, public.parent / "private", task, task.metric.options)
                grader.reference(inputs, folder / REFERENCE_FILE)
            (folder / IDS_FILE).unlink(missing_ok=True)
    write_atomically(folder / SCHEMA_FILE, schema.model_dump_json(indent=1) + "\n")
    return read_schema(folder)


def read_schema(folder: Path) -> SubmissionSchema:
    """Return the schema in a folder, with the paths of its files made absolute."""
    schema = SubmissionSchema.model_validate_json((folder / SCHEMA_FILE).read_bytes())
    paths = {
        name: folder / path for name in ("ids", "reference", "public") if (path := getattr(schema, name)) is not None
    }
    return schema.model_copy(update=paths)


def is_current(folder: Path) -> bool:
    """Return whether the folder has a schema that this version of mleredux can read; other schemas are written
    again.
    """
    with suppress(OSError, ValueError):
        return read_schema(folder).form == FORM
    return False


def refuse_malformed(task: Task, submission: Path, private: Path) -> None:
    """Check columns, ids and types of a submission whose grader has no `check`, as validation does.

    Args:
        task: The task.
        submission: The submission file.
        private: The folder of the answers, next to the public files and the schema.

    Raises:
        InvalidSubmission: The submission is not well-formed.
    """
    known, public = private.parent / "schema", private.parent / "public"
    with tempfile.TemporaryDirectory(prefix="mleredux-schema-") as folder:
        if is_current(known):
            schema = read_schema(known)
        elif public.is_dir():
            schema = write_schema(task, public, Path(folder))
        else:
            return
        verdict = validate(schema, submission, task=task)
    if not verdict.valid:
        raise InvalidSubmission(verdict.message)


def make_schema(task: Task, public: Path, folder: Path) -> SubmissionSchema:
    """Return the schema of a task without the grader's reference; write its ids to `ids.csv` in a folder.

    Raises:
        TaskBroken: As for `write_schema`.
    """
    submission = task.submission
    schema = SubmissionSchema(
        form=FORM, task=task.id, task_version=task.version, file=submission.file, extra_columns=submission.extra_columns
    )
    if submission.document is not None:
        form = submission.document.model_json_schema()
        from mleredux._core.submissions.documents import name_of

        return schema.model_copy(update={"json_schema": form, "document": name_of(submission.document)})
    if submission.execution is not None:
        beside = public.parent == folder.parent
        return schema.model_copy(update={"public": Path("..", public.name) if beside else public.resolve()})
    if submission.sample is None or not submission.file.endswith(".csv"):
        return schema
    sample = public / submission.sample
    if not sample.is_file():
        raise TaskBroken(f"The public files of task {task.id} do not include {submission.sample}.")
    csv.field_size_limit(1 << 30)
    with sample.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        header = next(rows, [])
        if missing := [name for name in submission.id_columns if name not in header]:
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
            nullable=types.empty[name],
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
    """Infers column types while the sample is read once."""

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
                cells = f"{len(row)} cells, the header {len(self.header)}"
                raise TaskBroken(f"In the sample submission, a row has {cells}.")
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
