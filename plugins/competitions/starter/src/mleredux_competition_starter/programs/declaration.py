"""Shared parts of the declarations of tasks whose submission is a program."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from mleredux.plugin.task import Competition, Metric, Submission
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
        with zipfile.ZipFile(public / "sample_submission.zip", "w") as archive:
            archive.writestr(zipfile.ZipInfo("main.py", _DATE), text)
            archive.writestr(zipfile.ZipInfo("weights.json", _DATE), b'{"share": 0.5}\n')
    else:
        (public / "sample_submission.py").write_bytes(text)


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
    category: str = "Tabular",
    license: str = "CC-BY-4.0",
) -> Competition:
    """Declare a task whose submission is a program, with its descriptions in the folder `texts`."""
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
