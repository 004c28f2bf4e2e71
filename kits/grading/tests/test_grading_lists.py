"""Lists of submissions: one process grades all, and each line is reported."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from mleredux.errors import MlereduxError
from mleredux_grading import Listed, grade_jsonl, grade_listed
from mleredux_support.commands import mleredux
from mleredux_support.toy import TOY


def test_a_list_of_submissions_is_graded_by_one_process(toy: Any, tmp_path: Path) -> None:
    _, prepared, path = toy.copy_of_sample("toy", tmp_path)
    parents = tmp_path / "parents"
    (prepared.private / "say-process").write_text(str(parents))  # tells the toy grader to write its process id there
    lines = [{"competition_id": "toy", "submission_path": str(path)}] * 5 + [
        {"competition_id": "toy", "submission_path": None}
    ]
    (tmp_path / "listed.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    report, _ = grade_jsonl(tmp_path / "listed.jsonl", data_dir=toy.data.path)
    assert [one["score"] for one in report["competition_reports"]] == [0.5] * 5 + [None]
    assert report["total_runs_with_submissions"] == report["total_valid_submissions"] == 5
    assert len(set(parents.read_text().split())) == 1


def test_every_line_of_a_list_is_reported_and_copies_are_marked(toy: Any, tmp_path: Path) -> None:
    _, prepared, path = toy.copy_of_sample("toy", tmp_path)
    sample, answers = path.read_text(), (prepared.private / "answers.csv").read_text()
    copies = {"sample": sample, "answers": answers}
    for name, text in {**copies}.items():
        header, *rows = text.split()
        copies[f"{name}-reversed"] = "\ufeff" + "\r\n".join([header, *rows[::-1]])
        copies[f"{name}-wider"] = "\n".join([f"{header},more", *(f"{row},1" for row in rows)])
        copies[f"{name}-as-floats"] = "\n".join([header, *(f"{row}.0" for row in rows)])
    lines = []
    for name, text in copies.items():
        (tmp_path / f"{name}.csv").write_text(text)
        lines.append({"competition_id": "toy", "submission_path": str(tmp_path / f"{name}.csv")})
    odd = ['{"competition_id": "toy"}', "{", "[]", '"text"', '{"competition_id": 7, "submission_path": "x"}']
    odd.append("[" * 100_000)
    tasks = ["nope", "../toy", "toy+nope"]
    more = [json.dumps({"competition_id": name, "submission_path": str(path)}) for name in tasks]
    (tmp_path / "listed.jsonl").write_text("\n".join([*map(json.dumps, lines), *odd, *more]))
    (tmp_path / "listed.jsonl").write_bytes(b"\xef\xbb\xbf" + (tmp_path / "listed.jsonl").read_bytes())
    report, _ = grade_jsonl(tmp_path / "listed.jsonl", data_dir=toy.data.path)
    reports = report["competition_reports"]
    assert len(reports) == report["total_runs"] == len(copies) + len(odd) + len(tasks)
    for name, one in zip(copies, reports, strict=False):
        kind = "answers" if name.startswith("answers") else "sample submission"
        assert f"It is a copy of the {kind}." in str(one["note"]), (name, one)
    for one in reports[len(copies) :]:
        assert not one["valid_submission"] and one["message"]
        assert not re.search("Expecting|char |recursion", one["message"]), "words of the interpreter"
    assert "line 9 is malformed" in reports[len(copies)]["message"]


def test_a_broken_task_costs_no_other_line(toy: Any, tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    _, _, path = toy.copy_of_sample("toy-nan", tmp_path)
    _, broken, _ = toy.copy_of_sample("toy", tmp_path / "broken")
    (broken.private / "answers.csv").unlink()
    lines = [{"competition_id": name, "submission_path": str(path)} for name in ("toy", "toy-nan")]
    (tmp_path / "listed.jsonl").write_text("\n".join(map(json.dumps, lines)))
    report, _ = grade_jsonl(tmp_path / "listed.jsonl", data_dir=toy.data.path)
    assert [one["valid_submission"] for one in report["competition_reports"]] == [False, True]


@pytest.mark.parametrize(("lines", "code", "scores"), [(0, 3, []), (1, 0, ["0.50000"]), (2, 0, ["0.50000"] * 2)])
def test_the_command_lists_scores_as_reports_do_and_refuses_a_file_without_lines(
    toy: Any, tmp_path: Path, lines: int, code: int, scores: list[str]
) -> None:
    _, _, path = toy.copy_of_sample("toy", tmp_path)
    line = json.dumps({"competition_id": "toy", "submission_path": str(path)})
    (tmp_path / "listed.jsonl").write_text(f"{line}\n" * lines)
    graded = ("grade", "--jsonl", str(tmp_path / "listed.jsonl"), "--data-dir", str(toy.data.path))
    done = mleredux("-p", str(TOY), *graded)
    assert (done.code, re.findall(r"\d\.\d+", done.out.partition(" valid,")[0])) == (code, scores), done.err


@pytest.mark.parametrize("name", ["nope", "../toy", "toy+nope"])
def test_what_a_list_reports_is_an_error_if_it_is_strict(toy: Any, tmp_path: Path, name: str) -> None:
    _, _, path = toy.copy_of_sample("toy", tmp_path)
    lines = [Listed(competition_id=task, submission_path=str(path)) for task in ("toy", name)]
    reports = grade_listed(lines, toy.data.path, lenient=True)["competition_reports"]
    assert [report["score"] for report in reports] == [0.5, None] and reports[1]["message"]
    with pytest.raises(MlereduxError) as error:
        grade_listed(lines, toy.data.path)
    assert error.value.message in reports[1]["message"]


@pytest.mark.parametrize("name", ["gone.csv", "students/Ünal.csv"])
def test_a_file_that_does_not_exist_is_named(toy: Any, tmp_path: Path, name: str) -> None:
    [report] = grade_listed([Listed(competition_id="toy", submission_path=str(tmp_path / name))], toy.data.path)[
        "competition_reports"
    ]
    assert (report["message"], report["submission_exists"]) == (f"{tmp_path / name} does not exist.", False)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "path", [b"a\\u0000b", b"\\ud800", b"\xe9.csv", b"\xff", "a\u2028b\x85c".encode(), b"", b"x" * 5000]
)
def test_no_path_costs_another_line(toy: Any, tmp_path: Path, path: bytes, end: str) -> None:
    _, _, good = toy.copy_of_sample("toy", tmp_path)
    paths = [bytes(good), path, bytes(good)]
    text = [b'{"competition_id": "toy", "submission_path": "%s"}' % each for each in paths]
    (tmp_path / "listed.jsonl").write_bytes(end.encode().join([b"", *text, b"  ", b""]))
    report, _ = grade_jsonl(tmp_path / "listed.jsonl", data_dir=toy.data.path)
    assert [one["valid_submission"] for one in report["competition_reports"]] == [True, False, True]
