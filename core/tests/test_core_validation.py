"""Validation: every kind of bad submission gets one sentence, in bounded time and memory, from the schema alone."""

from __future__ import annotations

import os
import resource
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from mleredux._core.cli.root import root
from mleredux._core.submissions import validation
from mleredux._core.submissions.files import open_below
from mleredux._core.submissions.schema import read_schema, write_schema
from mleredux._core.submissions.validation import validate, validate_below
from mleredux.models import Column, Submission, SubmissionSchema, Task, Verdict
from mleredux_testing.pytest_plugin import skip_or_fail

HEADER = "id,y,flag,note\n"
ROWS = [f"{i},{i / 2},True,text" for i in range(5)]
GOOD = HEADER + "\n".join(ROWS) + "\n"


@pytest.fixture
def schema(tmp_path: Path, toy: Any) -> SubmissionSchema:
    public = tmp_path / "public"
    public.mkdir()
    (public / "sample_submission.csv").write_text(GOOD)
    task: Task = toy.task().model_copy(update={"submission": Submission(id_columns=("id",))})
    write_schema(task, public, tmp_path / "schema")
    return read_schema(tmp_path / "schema")


def changed(**lines: str) -> str:
    rows = list(ROWS)
    for name, line in lines.items():
        rows[int(name[1:])] = line
    return HEADER + "\n".join(rows) + "\n"


def test_the_sample_is_well_formed_in_any_order_and_spelling(schema: SubmissionSchema, tmp_path: Path) -> None:
    path = tmp_path / "submission.csv"
    for text in (
        GOOD,
        GOOD.replace("\n", "\r\n"),
        "\ufeff" + GOOD,
        GOOD.rstrip("\n"),
        HEADER + "\n".join(reversed(ROWS)) + "\n\n",
        changed(r2='" 2.0 ","1e-3",false,"a ""quoted"", note\nwith lines"'),
        changed(r2="2,0.5,0,") + "\n",
    ):
        path.write_text(text, encoding="utf-8", newline="")
        assert validate(schema, path).valid, text


BAD_TEXTS = {
    "empty": ("", "is empty"),
    "blank": ("\n \n", "is empty"),
    "header only": (HEADER, "Expected 5 rows, but there are 0"),
    "not csv": ('{"id": 1}', "Missing columns"),
    "open quote": (changed(r4='4,"1,True,text'), "not a CSV file"),
    "wrong columns": (GOOD.replace("y", "z"), "Missing columns: 'y'"),
    "twice a column": (GOOD.replace("note", "y"), "Missing columns: 'note'"),
    "double column": ("id,y,flag,note,y\n" + "".join(f"{row},1\n" for row in ROWS), "A column name occurs twice"),
    "missing row": (HEADER + "\n".join(ROWS[:-1]), "Expected 5 rows, but there are 4"),
    "extra row": (GOOD + ROWS[0], "Expected 5 rows, but there are more"),
    "duplicate id": (changed(r4=ROWS[3]), "The id in line 6 occurs twice"),
    "other id": (changed(r4="77,1,True,text"), "The id in line 6 is not among"),
    "nan": (changed(r1="1,NaN,True,text"), "'y' has a missing value in line 3"),
    "signed nan": (changed(r1="1,-nan,True,text"), "must be a finite number; the value in line 3"),
    "nothing": (changed(r1="1,,True,text"), "'y' has a missing value in line 3"),
    "infinity": (changed(r1="1,-inf,True,text"), "'y' must be a finite number"),
    "overflow": (changed(r1="1,1e999,True,text"), "'y' must be a finite number"),
    "a word": (changed(r1="1,many,True,text"), "'y' must be a number; the value in line 3"),
    "python's number": (changed(r1="1,1_000,True,text"), "'y' must be a number; the value in line 3"),
    "other digits": (changed(r1="1,١٢,True,text"), "'y' must be a number; the value in line 3"),
    "no flag": (changed(r1="1,1,maybe,text"), "'flag' must be True or False; the value in line 3"),
    "short row": (changed(r1="1,1,True"), "Line 3 has 3 cells; the header has 4"),
    "long row": (changed(r1="1,1,True,text,more"), "Line 3 has 5 cells; the header has 4"),
}


@pytest.mark.parametrize("name", BAD_TEXTS)
def test_a_bad_table_gets_its_sentence(schema: SubmissionSchema, tmp_path: Path, name: str) -> None:
    text, sentence = BAD_TEXTS[name]
    (tmp_path / "submission.csv").write_text(text, encoding="utf-8")
    verdict = validate(schema, tmp_path / "submission.csv")
    assert not verdict.valid and sentence in verdict.message, verdict.message
    assert verdict.message.endswith(".") and "\n" not in verdict.message


BAD_BYTES = {
    **{
        f"{family}{order}": (f"\ufeff{GOOD}".encode(f"{family}{order}"), f"is {family.upper()};")
        for family in ("utf-16", "utf-32")
        for order in ("-le", "-be")
    },
    "utf-16 without mark": (GOOD.encode("utf-16-le"), "NUL bytes"),
    "latin-1": (changed(r4="4,1,True,caf\xe9").encode("latin-1"), "is not UTF-8 text"),
    "a zip": (b"PK\x03\x04" + bytes(50), "NUL bytes"),
    "noise": (bytes(range(1, 256)) * 40, ""),
}


@pytest.mark.parametrize("name", BAD_BYTES)
def test_what_is_no_text_gets_its_sentence(schema: SubmissionSchema, tmp_path: Path, name: str) -> None:
    content, sentence = BAD_BYTES[name]
    (tmp_path / "submission.csv").write_bytes(content)
    verdict = validate(schema, tmp_path / "submission.csv")
    assert not verdict.valid and sentence in verdict.message, verdict.message


def _device(path: Path) -> None:
    os.mknod(path, 0o20666, os.makedev(1, 5))  # /dev/zero


BAD_THINGS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "missing": (lambda path: None, "does not exist"),
    "folder": (lambda path: path.mkdir(), "is a folder, not a file"),
    "link": (lambda path: path.symlink_to("/etc/hostname"), "is a link; write the file itself"),
    "dangling link": (lambda path: path.symlink_to("/nowhere"), "is a link; write the file itself"),
    "fifo": (lambda path: os.mkfifo(path), "is not a regular file"),
    "device": (_device, "is not a regular file"),
    "sparse terabyte": (lambda path: path.touch() or os.truncate(path, 1 << 40), "is larger than 4 GiB"),
}


@pytest.mark.parametrize("name", BAD_THINGS)
def test_what_is_no_file_gets_its_sentence(schema: SubmissionSchema, tmp_path: Path, name: str) -> None:
    make, sentence = BAD_THINGS[name]
    try:
        make(tmp_path / "submission.csv")
    except PermissionError:  # other users, and some containers' roots, make none
        skip_or_fail("root", "devices can't be made here")
    for verdict in (validate(schema, tmp_path / "submission.csv"), validate_below(schema, tmp_path)):
        assert verdict == Verdict(valid=False, message=f"submission.csv {sentence}.")


def test_no_folder_on_the_way_may_be_a_link(tmp_path: Path) -> None:
    root, outside = tmp_path / "output", tmp_path / "outside"
    (root / "a").mkdir(parents=True)
    outside.mkdir()
    (outside / "b.csv").write_text("secret")
    (root / "a" / "b.csv").write_text("mine")
    (root / "l").symlink_to(outside, target_is_directory=True)
    with open_below(root, "a/b.csv") as file:
        assert file.read() == b"mine"
    for name in ("l/b.csv", "../outside/b.csv", str(outside / "b.csv"), "a/../../outside/b.csv", "a/b.csv/c"):
        with pytest.raises(OSError, match=r"lies outside|which is a link or a file, not a folder"):
            open_below(root, name)


@settings(max_examples=300, deadline=None)
@given(content=st.one_of(st.binary(max_size=300), st.text(alphabet='id,y01."\n\r \x00é', max_size=80).map(str.encode)))
def test_no_bytes_make_it_raise(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    schema = SubmissionSchema(
        task="t",
        task_version="1",
        rows=1,
        columns=(Column(name="id", role="id"), Column(name="y", role="target", type="number")),
    )
    path = tmp_path_factory.getbasetemp() / "any.csv"
    path.write_bytes(content)
    verdict = validate(schema, path)
    assert verdict.message and "\n" not in verdict.message


def test_names_from_the_submission_are_cut_short(schema: SubmissionSchema, tmp_path: Path) -> None:
    strict = schema.model_copy(update={"extra_columns": False})
    (tmp_path / "submission.csv").write_text(GOOD.replace("note", "note," + "x" * 1_000_000, 1))
    assert len(validate(strict, tmp_path / "submission.csv").message) < 300


@pytest.mark.parametrize(
    "piece", ["x" * 1000, ',"\n"' * 250, "," * 1000], ids=["one line", "one row of many lines", "one row of many cells"]
)
def test_a_row_without_end_is_refused_before_it_fills_the_memory(
    schema: SubmissionSchema, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: str
) -> None:
    monkeypatch.setattr(validation, "MAX_ROW", 1 << 20)
    (tmp_path / "submission.csv").write_text(HEADER + "0,1,True" + piece * 4000)
    verdict = validate(schema, tmp_path / "submission.csv")
    assert "longer than 1 million characters" in verdict.message or "not a CSV" in verdict.message


_MEASURED = """
import resource, sys, time
from pathlib import Path
from mleredux._core.submissions.schema import read_schema
from mleredux._core.submissions.validation import validate
schema = read_schema(Path(sys.argv[1]))
if sys.argv[3] == "open":
    schema = schema.model_copy(update={"rows": None, "ids": None})
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(validate(schema, Path(sys.argv[2])).message, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("how", "begins", "millions"), [("fixed", "Expected ", 10), ("open", "submission", 1)])
def test_millions_of_rows_take_no_memory(
    schema: SubmissionSchema, tmp_path: Path, how: str, begins: str, millions: int
) -> None:
    path = tmp_path / "many.csv"
    block = "\n".join(ROWS[1:]) + "\n"
    with path.open("w") as file:
        file.write(GOOD)
        for _ in range(millions * 5):
            file.write(block * 50_000)
    began = time.monotonic()
    told = subprocess.run(
        [sys.executable, "-c", _MEASURED, str(tmp_path / "schema"), str(path), how], capture_output=True, text=True
    )
    message, _, kilobytes = told.stdout.strip().rpartition(" ")
    assert message.startswith(begins), told
    assert int(kilobytes) < 60_000
    assert time.monotonic() - began < 120
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss > 0


def test_answers_are_never_opened(toy: Any) -> None:
    from mleredux._core.stages.prepare import prepare

    prepared = prepare(toy.task(), toy.catalogue, toy.data)
    shutil.rmtree(prepared.private)
    schema = read_schema(prepared.schema)
    assert validate(schema, prepared.public / "sample_submission.csv").valid
    assert "answer" not in (prepared.schema / "schema.json").read_text()


@pytest.mark.parametrize("command", ["grade", "validate"])
def test_a_file_and_a_task_in_the_wrong_order_are_told(command: str, tmp_path: Path) -> None:
    for name in ("mine.csv", "it's $(mine).csv"):
        file = str(tmp_path / name)
        Path(file).touch()
        ended = CliRunner().invoke(root, [command, "digits", file], prog_name="mleredux")
        assert ended.exit_code == 2
        assert f"The file comes first: `{shlex.join(('mleredux', command, file, 'digits'))}`." in ended.output


@pytest.mark.parametrize("other", ["Y", " y", "y\t", "y\u00a0", "\u200by", '"y "', "ID"])
def test_a_column_that_occurs_again_in_another_spelling_is_refused(
    schema: SubmissionSchema, tmp_path: Path, other: str
) -> None:
    wide = schema.model_copy(update={"extra_columns": True})
    for name, valid in ((other, False), ("another", True)):
        rows = "".join(f"{row},0.5\n" for row in ROWS)
        (tmp_path / "submission.csv").write_text(f"{HEADER.strip()},{name}\n{rows}")
        verdict = validate(wide, tmp_path / "submission.csv")
        assert verdict.valid is valid and ("keep one of them" in verdict.message) is not valid, verdict
