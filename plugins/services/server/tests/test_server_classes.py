"""A class on a server: a public score until the deadline, the private one after it, submissions per day."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
from mleredux._core.data import DataStore
from mleredux._core.plugins import current
from mleredux._core.stages.prepare import prepare
from mleredux_server.database.tables import Submission, now
from mleredux_server.work import WorkContext, grade
from mleredux_support.server_local import LocalServer
from sqlalchemy import update

Change = Callable[[list[dict[str, str]]], list[dict[str, str]]]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> DataStore:
    return DataStore(tmp_path_factory.mktemp("data"))


def graded(data: DataStore, folder: Path, task: str, change: Change) -> tuple[dict[str, Any], int]:
    """Grade the answers of a task after a change, as a worker does for a class with a public score."""
    prepared = prepare(current().task(task), current(), data)
    rows = list(csv.DictReader((prepared.private / "answers.csv").open()))
    changed, text = change([dict(row) for row in rows]), io.StringIO()
    writer = csv.DictWriter(text, list(changed[0]))
    writer.writeheader()
    writer.writerows(changed)
    (folder / "submission.csv").write_text(text.getvalue())
    request = {"task": task, "file": "submission.csv", "halves": True}
    context = SimpleNamespace(
        request=request, folder=folder, catalogue=current(), data=data, cancelled=lambda: False, settings=None
    )
    report = grade.work(cast("WorkContext", context))["report"]
    assert [path.name for path in folder.iterdir()] == ["submission.csv"], "nothing is left"
    return report, len(rows)


def _wrong(column: str, value: str, every: int) -> Change:
    return lambda rows: [{**row, column: value} if number % every == 0 else row for number, row in enumerate(rows)]


@pytest.mark.parametrize(
    ("task", "change"),
    [
        ("digits", lambda rows: rows),
        ("digits", _wrong("digit", "0", 3)),
        ("digits", lambda rows: _wrong("digit", "0", 3)(rows)[::-1]),
        ("digits", lambda rows: [{**row, "id": f"{row['id']}.0"} for row in _wrong("digit", "0", 5)(rows)]),
        ("breast-cancer", _wrong("malignant", "0.5", 4)),
        ("diabetes", _wrong("progression", "100", 2)),
        ("wine", lambda rows: rows),
    ],
)
def test_two_halves_of_the_rows_are_scored_apart(data: DataStore, tmp_path: Path, task: str, change: Change) -> None:
    report, number = graded(data, tmp_path, task, change)
    halves = report["details"].get("halves")
    if not report["valid_submission"]:
        assert halves is None
        return
    assert set(halves) == {"public", "private"} and None not in halves.values()
    if report["metric"] == "accuracy":
        shares = [share / number for share in range(number)]
        mixed = [share * halves["public"] + (1 - share) * halves["private"] for share in shares]
        assert min(abs(one - report["score"]) for one in mixed) < 1 / number
    else:
        low, high = sorted(halves.values())
        assert low - abs(report["score"]) / 3 <= report["score"] <= high + abs(report["score"]) / 3


def test_the_halves_are_the_same_for_everyone_and_apart(data: DataStore, tmp_path: Path) -> None:
    prepared = prepare(current().task("digits"), current(), data)
    answers = prepared.private / "answers.csv"
    ids: list[list[str]] = []
    for number in (0, 1):
        grade._choose(answers, tmp_path / "half.csv", ["id"], b"key", number)
        ids.append([row["id"] for row in csv.DictReader((tmp_path / "half.csv").open())])
    everyone = [row["id"] for row in csv.DictReader(answers.open())]
    assert sorted(ids[0] + ids[1]) == sorted(everyone) and not set(ids[0]) & set(ids[1])
    assert all(len(half) > len(everyone) / 3 for half in ids)
    grade._choose(answers, tmp_path / "half.csv", ["id"], b"other", 0)
    assert ids[0] != [row["id"] for row in csv.DictReader((tmp_path / "half.csv").open())], "the key decides"


def test_every_second_question_of_a_technique_counts_in_public() -> None:
    parts = [{"name": str(number), "score": number / 10, "weight": 1.0} for number in range(5)]
    parts.append({"name": "note", "score": 1.0, "weight": 0.0})
    report: Any = SimpleNamespace(details={"facts": {"parts": parts}})
    nothing: Any = None
    halves = grade.halves(nothing, nothing, nothing, report)
    assert halves == {"public": pytest.approx(0.2), "private": pytest.approx(0.2)}
    report.details["facts"]["parts"] = parts[1:2]
    assert grade.halves(nothing, nothing, nothing, report) == {"public": None, "private": 0.1}


def browser(local: LocalServer, token: str) -> httpx.Client:
    client = httpx.Client(base_url=local.url, headers={"Origin": local.url}, timeout=30)
    assert client.post("/ui/sign-in", data={"token": token}).status_code == 303
    return client


def hold(teacher: httpx.Client, **terms: str) -> httpx.Response:
    secret = re.findall(r'name="csrf" value="([^"]+)"', teacher.get("/ui/").text)[0]
    return teacher.post("/ui/deadlines", data={"csrf": secret, **terms})


def finish(local: LocalServer, made: str, public: float, private: float) -> None:
    """Record the grade of a submission, as its worker does."""
    report = {
        "competition_id": "wine", "score": 0.5, "submission_exists": True, "valid_submission": True, "metric": "m",
        "is_lower_better": False, "task_version": "1", "created_at": "2026-01-01T00:00:00Z", "submission_path": "x",
        "details": {"halves": {"public": public, "private": private}},
    }  # fmt: skip
    with local.service.database.writing() as session:
        session.execute(update(Submission).where(Submission.id == made).values(status="done", report=report))


def test_a_class_sees_public_scores_and_then_private_ones(local: LocalServer) -> None:
    token = local.user("ada", scopes=["read", "grade"])
    student, teacher = browser(local, token), browser(local, local.token)
    api = httpx.Client(base_url=local.url, headers={"Authorization": f"Bearer {token}"}, timeout=30)
    for wrong in ("0", "-1", "1.5", "many"):
        assert "is not a number of submissions" in hold(teacher, task="wine", until="", daily=wrong).text
    terms = {"task": "wine", "until": "2999-01-01T00:00", "public": "yes", "daily": "2"}
    assert hold(teacher, **terms).status_code == 303
    assert "You have 2 of 2 submissions left today." in student.get("/ui/tasks/wine").text

    def submit() -> httpx.Response:
        return api.post("/v1/submissions", data={"task": "wine"}, files={"file": ("s.csv", b"id\n1\n", "text/csv")})

    first, second, third = submit(), submit(), submit()
    assert (first.status_code, second.status_code, third.status_code) == (202, 202, 403)
    assert third.json()["type"].endswith("quota-exceeded") and "no submissions left for wine today" in third.text
    assert "You have 0 of 2 submissions left today." in student.get("/ui/tasks/wine").text
    assert api.post("/v1/submissions", data={"task": "digits"}, files={"file": b"id\n1\n"}).status_code == 202

    made = [answer.json()["id"] for answer in (first, second)]
    for changed, left in (({"status": "failed"}, 1), ({"status": "queued", "task": "wine+private"}, 0)):
        with local.service.database.writing() as session:
            session.execute(update(Submission).where(Submission.id == made[1]).values(**changed))
        assert f"You have {left} of 2 submissions left today." in student.get("/ui/tasks/wine").text, changed
    with local.service.database.writing() as session:
        session.execute(update(Submission).where(Submission.id == made[1]).values(task="wine"))
    assert api.delete(f"/v1/submissions/{made[0]}").status_code == 409, "a deleted one would not count"
    finish(local, made[0], 0.11, 0.99)
    finish(local, made[1], 0.625, 0.375)
    view = api.get(f"/v1/submissions/{made[1]}").json()
    assert view["report"] is None and "public score, on half of the answers, is 0.62500." in view["message"]
    assert "0.375" not in student.get("/ui/techniques").text + student.get(f"/ui/submissions/{made[1]}").text
    board = re.compile(r'<th scope="row">ada</th>.*?wine.*?class="right">([0-9.]+)', re.DOTALL)
    assert [match[1] for match in board.finditer(student.get("/ui/techniques").text)] == ["0.62500"]
    with local.service.database.writing() as session:  # the next day
        earlier = now() - timedelta(days=1)
        session.execute(update(Submission).where(Submission.id == made[0]).values(created_at=earlier))
    assert "You have 1 of 2 submissions left today." in student.get("/ui/tasks/wine").text

    hold(teacher, task="wine", what="release")
    assert [match[1] for match in board.finditer(student.get("/ui/techniques").text)] == ["0.37500"]
    assert api.get(f"/v1/submissions/{made[1]}").json()["report"]["details"]["halves"]["private"] == 0.375
    assert "submissions left today" not in student.get("/ui/tasks/wine").text and submit().status_code == 202
