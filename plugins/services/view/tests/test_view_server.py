"""The same pages behind the accounts of a server, in a real browser, and what only a server's pages have."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mleredux
import pytest
from mleredux.plugin.artifact import Run
from mleredux_server.accounts.accounts import make_token
from mleredux_server.database.tables import Experiment, Project, Submission, User, now
from mleredux_server.runs.changes import change_run
from mleredux_server.schemas.runs import RunChange
from mleredux_support.server import ServerProcess
from mleredux_support.server_local import LocalServer
from sqlalchemy import select

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.chromium
AXE = Path(__file__).with_name("axe.min.js").read_text(encoding="utf-8")
HOSTILE = "<img src=x onerror=alert(1)>\"'></script><script>alert(2)</script>{{7*7}}\u202e javascript:alert(3)"
PLAN = {
    "experiment": {"name": "trees", "question": HOSTILE, "tasks": ["digits", "wine"], "seeds": [0, 1, 2]},
    "arms": {"few": {"agent": "dummy"}, "many": {"agent": "baseline"}},
    "stop": {"max_cost_usd": 5.0, "max_hours": 9.0},
}
CHANGES = [{"time": now().isoformat(), "what": f"Extended by {HOSTILE}.", "results": 3}]
EXPERIMENT = "exp_trees"
PAGES = (
    "/", "/failures", "/new", "/tasks", "/tasks/digits", "/tasks/leakage@wine", "/techniques", "/people",
    "/experiments", f"/experiments/{EXPERIMENT}",
    f"/compare?experiment={EXPERIMENT}", "/server", "/runs/{hostile}", "/runs/{hostile}/steps", "/runs/{hostile}/log",
    "/runs/{hostile}/files?path=rollout.json", "/pairs/{hostile}/{first}", "/submissions/{submission}",
)  # fmt: skip


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, made_runs: Any) -> Iterator[LocalServer]:
    """A server of ann, who has a hostile run and an experiment of which ten of twelve runs ended; eve has nothing."""
    with LocalServer(Path(tmp_path_factory.mktemp("served")) / "runs").running() as served:
        served.users = {name: served.user(name) for name in ("ann", "eve")}  # type: ignore[attr-defined]
        with served.service.database.writing() as session:
            owner = session.scalars(select(User).where(User.name == "ann")).one()
            project = session.scalars(select(Project).where(Project.name == "ann")).one()
            request = {"plan": PLAN, "changes": CHANGES, "stopped": None}
            both = {"project_id": project.id, "user_id": owner.id, "created_at": now()}
            session.add(Experiment(id=EXPERIMENT, name=HOSTILE[:120], request=request, **both))
        folder = served.service.store.path
        cells = [(task, arm, seed) for seed in (0, 1, 2) for task in ("digits", "wine") for arm in ("few", "many")]
        for place, (task, arm, seed) in enumerate(cells):
            agent, status = str(PLAN["arms"][arm]["agent"]), "done" if place < 10 else "running"  # type: ignore[index]
            how = {"task": task, "agent": agent, "status": status, "experiment": EXPERIMENT, "arm": arm}
            served.adopt(Run(made_runs.make_run(folder, 5 * place + seed, **how)), "ann")
        texts = dict.fromkeys(("agent", "message", "code", "said"), HOSTILE)
        hostile = made_runs.make_run(folder, 99, task="wine", status="failed", log=HOSTILE.encode() + b"\n", **texts)
        served.adopt(Run(hostile), "ann")
        labels = RunChange.model_construct({"labels"}, labels={HOSTILE: HOSTILE})  # as no request may be
        change_run(served.service, served.caller("admin"), hostile.name, labels)
        with served.service.database.writing() as session:
            made = {"id": "sub_hostile", "task": "leakage@wine", "size": 1, "sha256": "0" * 64, "status": "failed"}
            session.add(Submission(**made, **both, message=HOSTILE))
            make_token(session, session.get_one(User, both["user_id"]), HOSTILE, ["read"])
        ids = {"hostile": hostile.name, "first": max(served.service.store.ids()), "submission": "sub_hostile"}
        served.ids = ids  # type: ignore[attr-defined]
        yield served


@pytest.fixture
def signed_in(served: Any, browser: Browser) -> Iterator[Any]:
    """A page of ann's browser; nothing may be executed, fail, or be asked of another site."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page, problems = context.new_page(), list[str]()
    page.on("dialog", lambda dialog: (problems.append(dialog.message), dialog.dismiss()))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda said: said.type == "error" and problems.append(said.text))
    page.on("request", lambda one: one.url.startswith((served.url, "data:")) or problems.append(one.url))
    page.goto(f"{served.url}/ui/")
    assert "401" in problems.pop()
    page.get_by_label("Token").fill(served.users["ann"])
    page.get_by_role("button", name="Sign in").click()
    page.locator("#rows tr").first.wait_for()
    yield page
    context.close()
    assert problems == []


def violations(page: Any) -> list[tuple[str, str]]:
    page.context.new_cdp_session(page).send("Runtime.evaluate", {"expression": AXE})
    found = page.evaluate("axe.run({resultTypes: ['violations']}).then((result) => result.violations)")
    return [(one["id"], one["nodes"][0]["html"][:200]) for one in found]


def test_no_page_has_a_violation_and_none_executes_what_agents_wrote(served: Any, signed_in: Any) -> None:
    for number, path in enumerate(PAGES):
        signed_in.set_viewport_size({"width": (1280, 400)[number % 2], "height": 900})
        signed_in.emulate_media(color_scheme=("light", "dark")[number // 2 % 2])
        signed_in.goto(f"{served.url}/ui{path.format(**served.ids)}")
        assert violations(signed_in) == [], path
        assert signed_in.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{path} scrolls sideways"


@pytest.fixture
def teacher(served: Any, browser: Browser) -> Iterator[Any]:
    """A page of an administrator."""
    page = browser.new_page()
    page.goto(f"{served.url}/ui/")
    page.get_by_label("Token").fill(served.token)
    page.get_by_role("button", name="Sign in").click()
    page.locator("#rows tr").first.wait_for()
    yield page
    page.close()


def test_a_teacher_holds_feedback_back_until_a_deadline(served: Any, signed_in: Any, teacher: Any) -> None:
    for page in (teacher, signed_in):
        page.goto(f"{served.url}/ui/tasks/leakage@wine")
    assert signed_in.get_by_label("Deadline").count() == 0
    teacher.get_by_label("Deadline").fill("2036-06-30T18:00")
    teacher.get_by_role("button", name="Delay feedback").click()
    teacher.get_by_role("status").filter(has_text="Feedback is shown after 2036-06-30 18:00").wait_for()
    assert violations(teacher) == []
    signed_in.goto(f"{served.url}/ui/submissions/sub_hostile")
    assert "It is submitted. Feedback is shown after" in signed_in.inner_text("main")
    teacher.get_by_role("button", name="Release feedback").click()
    teacher.get_by_role("status").filter(has_text="Feedback is shown.").wait_for()
    signed_in.reload()
    assert "<img src=x" in signed_in.inner_text("main")


def test_the_page_of_the_server_has_no_violation_for_an_administrator(served: Any, teacher: Any) -> None:
    teacher.get_by_role("link", name="Server").click()
    for name in ("Users", "Tokens", "Audit log"):
        assert teacher.get_by_role("heading", name=name).count() == 1
    assert violations(teacher) == [] and "<img src=x" in teacher.get_by_role("table", name="Tokens").inner_text()


def test_the_page_to_sign_in_has_no_violation(served: Any, browser: Browser) -> None:
    page = browser.new_page(viewport={"width": 400, "height": 800})
    page.goto(f"{served.url}/ui/")
    assert violations(page) == []
    page.get_by_label("Token").fill("mlr_wrong")
    page.get_by_role("button", name="Sign in").click()
    assert "token" in page.get_by_role("alert").inner_text() and violations(page) == []
    page.close()


def test_an_experiment_of_the_server_as_it_fills(served: Any, signed_in: Any) -> None:
    signed_in.get_by_role("link", name="Experiments").click()
    signed_in.locator("main h2 a").click()
    signed_in.get_by_text("The experiment has not ended.").wait_for(timeout=90_000)
    text = signed_in.inner_text("main")
    budget = ("of $5.00", "of 9", "Estimate for all 12 runs:")
    for said in ("10 of 12 runs ended", "2 running", *budget, "After 3 results:"):
        assert said in text, said
    told = signed_in.request.get(
        f"{served.url}/v1/experiments/{EXPERIMENT}/analysis",
        headers={"Authorization": f"Bearer {served.users['ann']}"},
    ).json()
    assert all(sentence in text for sentence in told["sentences"]) and told["sentences"]
    assert signed_in.locator("#so-far tbody tr").count() == 2
    assert signed_in.locator("#so-far tbody a", has_text="running").count() == 2
    signed_in.get_by_role("link", name="Compare its arms").click()
    assert signed_in.inner_text("h1") == "2 tasks: 2 arms"
    arms = signed_in.locator("table").first.inner_text()
    assert "few" in arms and "many" in arms
    signed_in.goto(f"{served.url}/ui/runs/{served.ids['first']}")
    signed_in.locator(f"main a[href='/ui/experiments/{EXPERIMENT}']").wait_for()


def test_an_experiment_of_others_is_not_there(served: Any, browser: Browser) -> None:
    page = browser.new_page()
    page.goto(f"{served.url}/ui/")
    page.get_by_label("Token").fill(served.users["eve"])
    page.get_by_role("button", name="Sign in").click()
    page.goto(f"{served.url}/ui/experiments")
    assert "There are no experiments here" in page.inner_text("main")
    for path in (f"/experiments/{EXPERIMENT}", f"/experiments/{EXPERIMENT}?part=runs"):
        assert page.goto(f"{served.url}/ui{path}").status == 404
    page.goto(f"{served.url}/ui/compare?experiment={EXPERIMENT}")  # links have the address's words, the page has not
    assert EXPERIMENT not in page.inner_text("main")
    page.close()


ANSWER = {
    "target": "cultivar", "problem": "multiclass", "train_rows": 125, "test_rows": 50, "smallest_class": 34,
    "duplicate_rows": 0, "shared_rows": 0, "groups": None, "time": None, "method": {"name": "StratifiedKFold"},
}  # fmt: skip


def test_a_person_takes_a_task_of_a_server_submits_and_gets_feedback(browser: Browser, tmp_path: Path) -> None:
    mleredux.prepare("cv@wine", data_dir=tmp_path / "data")
    with ServerProcess(tmp_path / "runs", "--data-dir", str(tmp_path / "data")) as server:
        page = browser.new_page()
        page.goto(f"{server.url}/ui/")
        page.get_by_label("Token").fill(server.token)
        page.get_by_role("button", name="Sign in").click()
        page.goto(f"{server.url}/ui/tasks/cv@wine")
        assert page.get_by_role("link", name="cv+planted-").count() == 1
        with page.expect_download() as started:
            page.get_by_role("link", name="Download all").click()
        with zipfile.ZipFile(started.value.path()) as packed:
            assert {"description.md", "question.json"} <= set(packed.namelist())
        answer = tmp_path / "cv_analysis.json"
        for content, said in (("{}", "Not valid: "), (json.dumps(ANSWER), "Valid: ")):
            answer.write_text(content)
            page.get_by_label("Submission", exact=True).set_input_files(answer)
            page.get_by_role("button", name="Submit").click()
            page.get_by_role("status").filter(has_text=said).wait_for()
        page.get_by_role("heading", name="Done").wait_for(timeout=60_000)
        page.get_by_role("heading", name="Feedback").wait_for()
        assert "smallest class" in page.inner_text("main") and violations(page) == []
        page.get_by_role("link", name="cv@wine").click()
        page.get_by_role("table", name="Submissions").get_by_role("row", name="done").wait_for()
        page.close()
