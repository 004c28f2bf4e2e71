"""Shared parts of the declarations of tasks whose submission is a program."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from string import Template

from mleredux.plugin.task import Competition, Metric, Submission, Task
from mleredux_programs import Execution

from mleredux_competition_starter.declaration import SOURCES
from mleredux_competition_starter.tables import read_table, write_table

HERE = Path(__file__).parent
SAMPLES = 20
_DATE = (2020, 1, 1, 0, 0, 0)
Split = Callable[[Path, Path, Path], None]


def hold_inputs(split: Split, program: str, raw: Path, public: Path, private: Path) -> None:
    """Split like another task, but keep the test rows for the grader; programs are checked on training rows.

    Args:
        split: Writes `train.csv`, `test.csv` and `sample_submission.csv`, and `answers.csv`.
        program: The sample submission, a file in this folder; packed if the task expects an archive.
    """
    split(raw, public, private)
    (public / "test.csv").rename(private / "inputs.csv")
    header = read_table(private / "inputs.csv")[0]
    columns, train = read_table(public / "train.csv")
    places = [columns.index(name) for name in header]
    sample, rows = read_table(public / "sample_submission.csv")
    (public / "sample_submission.csv").unlink()
    write_table(public / "sample_inputs.csv", header, [[row[place] for place in places] for row in train[:SAMPLES]])
    write_table(public / "sample_predictions.csv", sample, [[row[0], *rows[0][1:]] for row in train[:SAMPLES]])
    add_sample(program, public)


def add_sample(program: str, public: Path) -> None:
    """Write the sample submission: a script, or a reproducible archive with the script as `main.py`."""
    text = (HERE / "samples" / f"{program}.py").read_bytes()
    if program.endswith("model"):
        (public / "sample_submission.zip").write_bytes(_packed({"main.py": text, "weights.json": b'{"share": 0.5}\n'}))
    else:
        (public / "sample_submission.py").write_bytes(text)


def solution(target: str, answers: str, task: Task, private: Path) -> bytes:
    """Return a program that has the answers: a script, or an archive with it.

    Args:
        target: The column of `answers`, a private table, to predict, or to choose as the action of an episode.
    """
    header, rows = read_table(private / answers)
    known = {row[0]: {target: row[header.index(target)]} for row in rows}
    words = {"answers": json.dumps(known), "ids": task.submission.id_columns[0]}
    text = Template((HERE / "solution.txt").read_text(encoding="utf-8")).substitute(words).encode()
    return _packed({"main.py": text}) if task.submission.file.endswith(".zip") else text


def _packed(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, _DATE), content)
    return buffer.getvalue()


def program_task(
    task: str,
    *,
    title: str,
    fetch: Callable[[Path], None],
    prepare: Split,
    ids: Sequence[str] = ("id",),
    targets: Sequence[str],
    metric: Metric,
    execution: Execution,
    known_answers: str,
    known: tuple[str, str] | None = None,
    category: str = "Tabular",
    license: str = "CC-BY-4.0",
) -> Competition:
    """Declare a task whose submission is a program, with its descriptions in the folder `texts`.

    Args:
        known: The column and the private table that `solution` gets; None: those of the predictions.
    """
    suffix = "zip" if execution.kind == "model" else "py"
    return Competition(
        id=task,
        title=title,
        description=HERE / "texts" / f"{task}.md",
        description_obfuscated=HERE / "texts" / f"{task}_obfuscated.md",
        fetch=fetch,
        prepare=prepare,
        submission=Submission(
            file=f"submission.{suffix}",
            sample=f"sample_submission.{suffix}",
            id_columns=tuple(ids),
            target_columns=tuple(targets),
            execution=execution,
        ),
        solution=partial(solution, *(known or (targets[0], "answers.csv"))),
        known_answers=(known_answers,),
        metric=metric,
        direction="maximize",
        category=category,
        license=license,
        license_source=SOURCES[known_answers.rpartition(".")[2]],
        complexity="low",
        sets=("programs",),
        tags=("program", execution.kind, "public-answers"),
    )


def held(split: Split, program: str) -> Split:
    """Return a `prepare` that calls `hold_inputs`."""
    return partial(hold_inputs, split, program)
