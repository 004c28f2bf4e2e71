"""What notebooks show: tables in which nothing that came from outside is markup."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest
from mleredux.models import Artifact
from mleredux_client import Client
from mleredux_client.display import MAX_ROWS
from mleredux_client.frames import Listing
from mleredux_client.models.run import Report, RunRecord

EVIL = "<script>alert('x')</script>\"'&<img src=x onerror=y>"
TIME = "2026-11-21T12:00:00Z"
REPORT = {
    "competition_id": EVIL,
    "score": 0.98765432,
    "silver_medal": True,
    "gold_threshold": 0.99,
    "submission_exists": True,
    "valid_submission": True,
    "is_lower_better": False,
    "created_at": TIME,
    "submission_path": EVIL,
    "message": EVIL,
    "note": EVIL,
    "task_version": EVIL,
    "metric": EVIL,
    "limit": EVIL,
}
RUN = {
    **dict.fromkeys(("id", "task", "agent", "sandbox", "status", "cause", "message", "waiting_for", "medal"), EVIL),
    "labels": {EVIL: EVIL},
    "options": {EVIL: EVIL},
    "score": 0.98765432,
    "started_at": TIME,
    "ended_at": "2026-11-21T12:00:05Z",
    "seconds": 3.0,
    "paused_seconds": 1.0,
    "report": REPORT,
}


class Tags(HTMLParser):
    """Names of tags, and texts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.texts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        assert {name for name, _ in attrs} <= {"style"}

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def shown(thing: Any) -> Tags:
    found = Tags(thing._repr_html_())
    assert found.tags <= {"div", "b", "span", "table", "thead", "tbody", "tr", "th", "td", "p"}
    return found


@pytest.fixture
def things(fake: Any, client: Client) -> dict[str, Any]:
    fake.serve("GET /v1/runs/x", RUN)
    fake.serve("GET /v1/runs", {"items": [RUN, RUN], "next": None})
    fake.serve("GET /v1/tasks", {"items": [{"id": EVIL, "tags": [EVIL], "size_gb": None}], "next": None})
    fake.serve("GET /v1/experiments/x", {"id": EVIL, "name": EVIL, "counts": {EVIL: 2}, "runs": [RUN]})
    fake.serve("GET /v1/submissions/x", {"id": EVIL, "task": EVIL, "status": EVIL, "message": EVIL})
    fake.serve("GET /v1/builds/x", {"id": EVIL, "agent": EVIL, "status": EVIL})
    fake.serve("GET /v1/runs/y", {**RUN, "id": "y"})
    fake.serve("GET /v1/runs/y/artifacts", {"items": [{"path": EVIL, "producer": EVIL}], "next": None})
    return {
        "run": client.get_run("x"),
        "report": Report.model_validate(REPORT),
        "runs": client.runs(),
        "list of runs": client.runs().list(),
        "tasks": client.tasks(),
        "experiment": client.get_experiment("x"),
        "submission": client.get_submission("x"),
        "build": client.get_build("x"),
        "artifacts": client.get_run("y").artifacts,
    }


def test_hostile_text_is_shown_as_text_everywhere(things: dict[str, Any]) -> None:
    for name, thing in things.items():
        assert EVIL in " ".join(shown(thing).texts), name


def test_a_run_shows_its_score_its_medal_and_its_report(things: dict[str, Any]) -> None:
    texts = " ".join(shown(things["run"]).texts)
    assert "0.987654" in texts and "3.0 s, 2.0 s working" in texts and "gold 0.99" in texts
    assert "🥈 silver" in " ".join(shown(things["report"]).texts)


def test_a_long_list_is_shown_in_part_and_says_so() -> None:
    runs = Listing(RunRecord(id=f"r{n}", task="t", agent="a", status="done") for n in range(MAX_ROWS + 5))
    texts = shown(runs).texts
    assert "… and 5 more" in texts and f"r{MAX_ROWS}" not in texts
    assert len(runs.to_dataframe()) == MAX_ROWS + 5


def test_a_long_text_is_shown_in_part() -> None:
    html = Listing([Artifact(path="x" * 150, producer="p" * 199)])._repr_html_()
    assert len(html) < 1000


def test_an_empty_list_is_an_empty_table() -> None:
    assert shown(Listing()).texts == []
