"""A class is handed its tasks, submits, and gets feedback after the deadline."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mleredux
import pytest
from click.testing import CliRunner
from mleredux._core.cli.root import root
from mleredux._core.data import DataStore
from mleredux.errors import MlereduxError, NotApplicable
from mleredux.plugin.command import current
from mleredux_techniques import classroom, pages
from mleredux_techniques._kit.declaration import preparation
from mleredux_techniques.classroom import Student, Terms, read_class, seed_of

GOOD = {"target": "cultivar", "problem": "multiclass", "train_rows": 125, "test_rows": 53, "smallest_class": 34}
GOOD |= {"duplicate_rows": 0, "shared_rows": 0, "groups": None, "time": None, "method": {"name": "StratifiedKFold"}}


def run(*words: str, code: int = 0) -> str:
    done = CliRunner().invoke(root, words)
    assert done.exit_code == code, f"{done.output}\n{done.exception!r}"
    return done.stdout


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


def test_a_class_from_the_hand_out_to_the_questions(
    data: Path, mleredux_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(mleredux_home)
    monkeypatch.setenv("MLEREDUX_DATA_ROOT", str(data))
    Path("c.csv").write_text("student,task\nada,cv@wine\ngrace,cv@wine\nalan,cv@wine\n")
    before = run("classroom", "c.csv", "--deadline", "2999-01-01")
    assert before.count("missing") == 3 and "3 of 3 are graded later, the last after 2999-01-01" in before
    assert {"question.json", "description.md"} <= {path.name for path in Path("class/ada/task").iterdir()}
    assert not [path for path in Path("class").rglob("*") if "truth" in path.name]
    wrong = {**GOOD, "train_rows": 100}
    Path("class/ada/cv_analysis.json").write_text(json.dumps(GOOD))
    Path("class/grace/cv_analysis.json").write_text("{}")
    Path("class/alan/cv_analysis.json").write_text(json.dumps(wrong))
    still = json.loads(run("classroom", "c.csv", "--json"))
    assert [row["status"] for row in still["students"]] == ["submitted", "invalid", "submitted"], still
    assert still["questions"] == [] and not Path("class/ada/feedback.md").exists()
    graded: dict[str, Any] = json.loads(run("classroom", "c.csv", "--deadline", "now", "--json"))
    rows = {row["student"]: row for row in graded["students"]}
    assert rows["ada"]["score"] > rows["alan"]["score"] and rows["grace"]["status"] == "invalid"
    asked = {row["question"]: row for row in graded["questions"]}
    assert (asked["train rows"]["right"], asked["train rows"]["answered"]) == (1, 2)
    assert (asked["test rows"]["right"], asked["test rows"]["answered"]) == (2, 2)
    assert "train rows" in Path("class/alan/feedback.md").read_text()
    late = json.loads(run("classroom", "c.csv", "--deadline", "2020-01-01", "--json"))
    assert {row["status"] for row in late["students"]} == {"late"}


def test_a_public_score_counts_every_second_question_until_the_deadline(
    data: Path, mleredux_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(mleredux_home)
    monkeypatch.setenv("MLEREDUX_DATA_ROOT", str(data))
    Path("c.csv").write_text("student,task\nada,cv@wine\nalan,cv@wine\n")
    run("classroom", "c.csv", "--deadline", "2999-01-01", "--public")
    parts = mleredux.grade(_written("class/ada", GOOD), "cv@wine").details["facts"]["parts"]
    names = [part["name"] for part in parts if part["weight"] > 0]
    assert "train rows" in names
    _written("class/alan", {**GOOD, "train_rows": 100})
    before = {row["student"]: row for row in json.loads(run("classroom", "c.csv", "--json"))["students"]}
    assert before["ada"]["status"] == "submitted" and "public score" in before["ada"]["message"]
    assert before["ada"]["questions"] == [] and not Path("class/ada/feedback.md").exists()
    graded = json.loads(run("classroom", "c.csv", "--deadline", "now", "--json"))
    after = {row["student"]: row for row in graded["students"]}
    lower, same = (before, after) if names.index("train rows") % 2 else (after, before)
    assert lower["alan"]["score"] < lower["ada"]["score"] and same["alan"]["score"] == same["ada"]["score"]


def _written(folder: str, document: dict[str, Any]) -> Path:
    path = Path(folder, "cv_analysis.json")
    path.write_text(json.dumps(document))
    return path


def test_grade_shows_each_question_and_validate_names_all_problems(
    data: Path, mleredux_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLEREDUX_DATA_ROOT", str(data))
    monkeypatch.setenv("COLUMNS", "60")
    path = mleredux_home / "cv_analysis.json"
    path.write_text(json.dumps({**GOOD, "train_rows": 100}))
    shown = run("grade", str(path), "cv@wine")
    sentence = "The number of training rows is 125."
    question = f"  train rows  0.00 of 0.05 points\n    answered: 100\n    holds: 125\n    {sentence}"
    assert question in shown
    assert max(map(len, shown.splitlines())) <= 60
    path.write_text(json.dumps({name: value for name, value in GOOD.items() if name not in ("target", "groups")}))
    message = run("validate", str(path), "cv@wine", code=3)
    assert "target: Field required; groups: Field required." in message


def test_each_student_has_a_seed_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text("student,seed,deadline\nada,,\ngrace,,2999-01-01\nalan,7,2020-01-01\n")
    found = read_class(path, Terms("leakage@wine"))
    tasks = [student.task for student in found]
    assert [student.over for student in found] == [True, False, True]
    assert found == read_class(path, Terms("leakage@wine")) and len(set(tasks)) == 3
    assert tasks[0] == f"leakage+planted-{seed_of('ada', 'leakage@wine')}@wine" and tasks[2] == "leakage+planted-7@wine"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("name\nada\n", "Line 2 of c.csv has the invalid student name ''"),
        ("student\n../ada\n", "Line 2 of c.csv has the invalid student name '../ada'"),
        ("student\nada\nada\n", "Line 3 of c.csv repeats ada"),
        ("student,seed\nada,x\n", "Line 2 of c.csv has the invalid seed 'x'"),
        ("student,deadline\nada,soon\n", "Line 2 of c.csv has the invalid deadline 'soon'"),
        ("student\n", "lists no students"),
    ],
)
def test_a_class_list_that_is_not_valid_is_told_by_its_line(
    text: str, told: str, mleredux_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(mleredux_home)
    Path("c.csv").write_text(text)
    ended = CliRunner().invoke(root, ["classroom", "c.csv", "--task", "cv@wine"])
    assert told in str(ended.exception) and not Path("class").exists()


def test_a_student_gets_the_next_seed_where_the_task_does_not_apply(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "class.csv"
    path.write_text("student\nada\n")
    terms = Terms("leakage@wine")
    (ada,) = read_class(path, terms)
    given: list[str] = []

    def refuse_twice(student: Student, folder: Path, data_dir: str | None) -> bool:
        given.append(student.task)
        if len(given) < 3:
            raise NotApplicable("leakage does not apply to it.")
        return True

    monkeypatch.setattr(classroom, "write_handout", refuse_twice)
    student, written = classroom.next_handout(ada, terms, tmp_path / "class", None)
    assert written and student.task == given[2] and len(set(given)) == 3
    assert read_class(path, Terms("leakage@wine").kept(tmp_path / "class")) == [student]
    path.write_text("student,seed\nada,7\n")
    (chosen,) = read_class(path, terms)
    given.clear()
    with pytest.raises(NotApplicable):
        classroom.next_handout(chosen, terms, tmp_path / "class", None)


def test_the_pages_lead_a_person_to_the_seed_that_a_class_hands_out(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    variants = [classroom.own_task("ada", "cv@wine", number) for number in range(2)]

    def refuse_first(dataset: Any, _technique: str) -> None:
        given.append(dataset)
        if len(given) == 1:
            raise NotApplicable("cv does not apply to it.")

    given: list[Any] = []
    monkeypatch.setattr(preparation, "refuse_undecided", refuse_first)
    form = {"name": ["ada"], "task": ["cv@wine"]}
    visit: Any = SimpleNamespace(form=form, data_dir=data, link=lambda *parts: "/".join(parts))
    assert pages.own(visit) == f"tasks/{variants[1]}"
    assert DataStore(data).refusal(current().task(variants[0])) == "cv does not apply to it."
    assert pages.own(visit) == f"tasks/{variants[1]}"
    visit.form = {**form, "name": ["no name"]}
    with pytest.raises(MlereduxError, match="not a valid name"):
        pages.own(visit)
