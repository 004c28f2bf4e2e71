"""The web pages behind accounts: signing in, what each user sees and may do, and what other sites can't."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from mleredux_server.accounts.identity import hash_of, new_id
from mleredux_server.accounts.limits import RateLimit
from mleredux_server.database.tables import Audit, Project, RunRow, Submission, Token, User, now
from mleredux_server.files.manifest import MANIFEST
from mleredux_server.web.source import ServerSource
from mleredux_support.server_local import LocalServer
from sqlalchemy import event, func, select, update

PAGES = ("", "/steps", "/versions", "/versions/1", "/log", "/files", "/files?path=run.json", "/raw?path=run.json")
ACTIONS = ("stop", "retry", "label")


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """A server with the users ann and bob, who have one run each."""
    with LocalServer(Path(tmp_path_factory.mktemp("web")) / "runs").running() as local:
        local.app.state.limits.of_failures = RateLimit(10**6)
        yield local


@pytest.fixture(scope="module")
def tokens(local: LocalServer) -> dict[str, str]:
    names = {"ann": ["read", "run"], "bob": ["read", "run"], "reader": ["read"], "grader": ["grade"]}
    return {name: local.user(name, scopes=scopes) for name, scopes in names.items()}


@pytest.fixture(scope="module")
def runs(local: LocalServer, tokens: dict[str, str]) -> dict[str, str]:
    made = {name: local.make_run(user=name) for name in ("ann", "bob")}
    local.execute(made["bob"])
    return {name: run.id for name, run in made.items()}


def browser(local: LocalServer, token: str) -> httpx.Client:
    """A client that has signed in."""
    client = httpx.Client(base_url=local.url, headers={"Origin": local.url}, follow_redirects=False, timeout=30)
    answer = client.post("/ui/sign-in", data={"token": token})
    assert answer.status_code == 303, answer.text
    return client


def secret_of(client: httpx.Client) -> str:
    return re.findall(r'name="csrf" value="([^"]+)"', client.get("/ui/").text)[0]


def post(client: httpx.Client, path: str, **form: str) -> httpx.Response:
    return client.post(path, data={"csrf": secret_of(client), **form})


@pytest.mark.attack
def test_nobody_sees_anything_before_signing_in(local: LocalServer, runs: dict[str, str]) -> None:
    for path in ("/", "/live", "/server", "/tasks", "/nothing", *(f"/runs/{runs['bob']}{page}" for page in PAGES)):
        answer = httpx.get(f"{local.url}/ui{path}")
        assert answer.status_code == 401 and "Sign in" in answer.text and runs["bob"] not in answer.text
    assert httpx.post(f"{local.url}/ui/actions/stop", headers={"Origin": local.url}).status_code == 401
    assert httpx.get(f"{local.url}/ui/static/view.css").status_code == 200
    assert httpx.get(local.url).headers["location"] == "/ui/"


@pytest.mark.attack
def test_signing_in_needs_a_valid_token_and_this_site(local: LocalServer, tokens: dict[str, str]) -> None:
    own = {"Origin": local.url}
    for token in ("", "wrong", "mlr_" + "x" * 40, "mlr_\u00e4"):
        refused = httpx.post(f"{local.url}/ui/sign-in", data={"token": token}, headers=own)
        assert refused.status_code == 401 and "set-cookie" not in refused.headers
    for origin in ({}, {"Origin": "null"}, {"Origin": "https://evil.example"}):
        refused = httpx.post(f"{local.url}/ui/sign-in", data={"token": tokens["ann"]}, headers=origin)
        assert refused.status_code == 403 and "set-cookie" not in refused.headers
    cookie = httpx.post(f"{local.url}/ui/sign-in", data={"token": tokens["ann"]}, headers=own).headers["set-cookie"]
    assert {"httponly", "samesite=strict", "path=/ui"} <= {part.strip().lower() for part in cookie.split(";")}
    assert tokens["ann"] not in cookie


@pytest.mark.attack
def test_every_answer_has_the_strict_headers(local: LocalServer, tokens: dict[str, str]) -> None:
    client = browser(local, tokens["ann"])
    for path in ("/ui/", "/ui/static/view.js", "/ui/nothing", "/ui/server", "/ui/tasks/digits"):
        headers = client.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self';")
        assert "unsafe" not in headers["content-security-policy"] and headers["x-frame-options"] == "DENY"
        assert headers["x-content-type-options"] == "nosniff" and "no-cache" in headers["cache-control"] + "no-cache"


@pytest.mark.attack
def test_a_user_sees_only_runs_of_their_projects(
    local: LocalServer, tokens: dict[str, str], runs: dict[str, str]
) -> None:
    ann, bob, admin = (browser(local, token) for token in (tokens["ann"], tokens["bob"], local.token))
    assert f"run-{runs['ann']}" in ann.get("/ui/").text and runs["bob"] not in ann.get("/ui/").text
    searched = ann.get("/ui/?q=" + runs["bob"]).text  # which has the word that was searched for, in its form and links
    assert runs["bob"] not in searched.replace(f'value="{runs["bob"]}"', "").replace(f"q={runs['bob']}", "")
    assert all(f"run-{run}" in admin.get("/ui/").text for run in runs.values())
    for page in PAGES:
        path = f"/ui/runs/{runs['bob']}{page}"
        assert bob.get(path).status_code == 200 or page == "/versions/1", page
        assert ann.get(path).status_code == 404, page
    assert ann.get(f"/ui/pairs/{runs['ann']}/{runs['bob']}").status_code == 404
    assert ann.get(f"/ui/live?run={runs['bob']}").status_code == 404
    assert ann.get(f"/ui/compare?run={runs['bob']}").status_code == 404
    assert (
        runs["bob"] not in ann.get("/ui/tasks/digits").text + ann.get("/ui/failures").text + ann.get("/ui/server").text
    )
    for name in ACTIONS:
        assert post(ann, f"/ui/actions/{name}", run=runs["bob"], label="a=b").status_code == 404
    assert post(ann, "/ui/actions/label", run=runs["ann"], label="batch=7").status_code == 303
    assert "batch <b>7</b>" in ann.get("/ui/?q=batch").text and "batch" not in bob.get("/ui/").text
    assert ann.get(f"/v1/runs/{runs['ann']}", headers={"Authorization": f"Bearer {tokens['ann']}"}).json()[
        "labels"
    ] == {"batch": "7"}


@pytest.mark.parametrize(
    ("name", "value", "status"), [("x", "1", 200), ("x:y", "1", 422), ("n" * 129, "1", 422), ("x", "v" * 129, 422)]
)
def test_a_form_sets_the_labels_that_the_api_accepts(
    local: LocalServer, tokens: dict[str, str], runs: dict[str, str], name: str, value: str, status: int
) -> None:
    ann, headers = browser(local, tokens["ann"]), {"Authorization": f"Bearer {tokens['ann']}"}
    form = post(ann, "/ui/actions/label", run=runs["ann"], label=f"{name}={value}")
    answer = ann.patch(f"/v1/runs/{runs['ann']}", json={"labels": {name: value}}, headers=headers)
    assert (form.status_code == 303, answer.status_code) == (status == 200, status), form.text
    assert ann.patch(f"/v1/runs/{runs['ann']}", json={"labels": {"x": None}}, headers=headers).is_success
    with local.service.database.reading() as session:
        actions = session.scalars(select(Audit.action).where(Audit.target.contains(runs["ann"])))
        assert "label" not in set(actions), "a form leaves the same record as a request"


@pytest.mark.parametrize(
    "query", ["", "?task=digits", "?agent=dummy&task=digits", "?arm=", "?measure=score", "?all=1&q=dummy"]
)
def test_a_comparison_reads_a_bounded_number_of_runs(
    local: LocalServer, tokens: dict[str, str], monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    made = 0
    with local.service.database.reading() as session:
        made = session.scalar(select(func.count()).select_from(RunRow)) or 0
    for _ in range(max(0, 110 - made)):
        local.make_run(user="bob")
    monkeypatch.setattr("mleredux_experiments.pages.compare.MOST_FILTERED", 100)
    opened: list[str] = []
    read = ServerSource.run
    monkeypatch.setattr(ServerSource, "run", lambda source, run_id: (opened.append(run_id), read(source, run_id))[1])
    page = browser(local, tokens["bob"]).get(f"/ui/compare{query}")
    assert page.status_code < 500 and len(opened) <= 100
    assert bool(opened) == ("=d" in query), "without a filter none is read"
    assert "<svg" not in page.text.partition("<main")[2], "pictures are drawn when they are requested"


@pytest.mark.parametrize("page", ["compare?task=digits", "tasks/digits", "compare?{runs}"])
def test_a_page_of_many_runs_makes_as_many_queries_as_one_of_few(
    local: LocalServer, tokens: dict[str, str], page: str
) -> None:
    counts = []
    for many in (3, 30):
        name = f"counting{many}{len(page)}"
        user = browser(local, local.user(name))
        runs = [local.make_run(user=name) for _ in range(many)]
        for run in runs:
            (run.path / "report.json").write_text("{}")
            (run.path / MANIFEST).touch()
            local.settle(run.id, "done")
        queries: list[str] = []

        def count(_connection: Any, _cursor: Any, query: str, *_others: Any, queries: list[str] = queries) -> None:
            queries.append(query)

        engine, chosen = local.service.database.engine, "&".join(f"run={run.id}" for run in runs)
        event.listen(engine, "before_cursor_execute", count)
        assert user.get(f"/ui/{page.format(runs=chosen)}").status_code < 500
        event.remove(engine, "before_cursor_execute", count)
        counts.append(len(queries))
    assert counts[0] == counts[1] > 0


@pytest.mark.attack
def test_forms_need_the_secret_of_the_session(local: LocalServer, tokens: dict[str, str], runs: dict[str, str]) -> None:
    ann, bob = browser(local, tokens["ann"]), browser(local, tokens["bob"])
    form = {"run": runs["ann"], "label": "x=y"}
    for forged in ({}, {"csrf": "x" * 43}, {"csrf": secret_of(bob)}):
        assert ann.post("/ui/actions/label", data={**form, **forged}).status_code == 403
    other = {"Origin": "https://evil.example"}
    assert ann.post("/ui/actions/label", data={**form, "csrf": secret_of(ann)}, headers=other).status_code == 403
    assert ann.post("/ui/sign-out").status_code == 403
    assert post(ann, "/ui/sign-out").status_code == 303
    assert ann.get("/ui/").status_code == 401


@pytest.mark.attack
def test_a_form_does_what_the_scopes_of_its_token_allow(
    local: LocalServer, tokens: dict[str, str], runs: dict[str, str]
) -> None:
    asked = {"task": "digits", "agent": "dummy", "seeds": "1 2"}
    ann, reader, grader = (browser(local, tokens[name]) for name in ("ann", "reader", "grader"))
    assert "lacks the scope run" in post(reader, "/ui/actions/launch", **asked).text
    assert grader.get("/ui/").status_code == 409 and "lacks the scope read" in grader.get("/ui/").text
    assert post(ann, "/ui/actions/launch", **asked).status_code == 303
    assert ann.get("/ui/").text.count("Requested ") == 2
    assert "There is no task" in post(ann, "/ui/actions/launch", **{**asked, "task": "digitz"}).text
    assert post(ann, "/people/start", task="digits").status_code in (404, 405)


def test_the_page_of_the_server_shows_what_the_token_may_see(
    local: LocalServer, tokens: dict[str, str], runs: dict[str, str]
) -> None:
    ann, admin = (
        browser(local, tokens["ann"]).get("/ui/server").text,
        browser(local, local.token).get("/ui/server").text,
    )
    for title in ("Queue", "Machine", "Quotas"):
        assert title in ann and title in admin
    for title in ("Users", "Audit log", "Tokens"):
        assert f">{title}</h2>" in admin and f">{title}</h2>" not in ann
    assert "bob" not in ann and "Waits for" in ann and hash_of(tokens["ann"]) not in admin


@pytest.mark.attack
def test_a_revoked_token_ends_its_sessions(local: LocalServer) -> None:
    token = local.user("leaving", scopes=["read"])
    client = browser(local, token)
    assert client.get("/ui/").status_code == 200
    with local.service.database.writing() as session:
        session.execute(update(Token).where(Token.hash == hash_of(token)).values(revoked_at=now()))
    local.app.state.tokens.forget()
    assert client.get("/ui/").status_code == 401


@pytest.mark.attack
def test_files_with_secrets_that_are_not_masked_yet_are_not_shown(
    local: LocalServer, tokens: dict[str, str], runs: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from mleredux.plugin.files import Mask
    from mleredux_server.files.masks import Known

    ann = browser(local, tokens["ann"])
    (local.service.store.path / runs["ann"] / "logs").mkdir(exist_ok=True)
    (local.service.store.path / runs["ann"] / "logs" / "agent.log").write_text("key hunter2-secret\n")
    masks: Any = local.app.state.masks
    masks._known[runs["ann"]] = Known(Mask({"hunter2-secret"}), set(), set())
    for page in PAGES:
        answer = ann.get(f"/ui/runs/{runs['ann']}{page}")
        assert answer.status_code == 409 and "hunter2" not in answer.text


@pytest.mark.attack
def test_submissions_need_the_secret_and_the_scope_and_are_the_users_own(
    local: LocalServer, tokens: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def submit(client: httpx.Client, task: str = "wine", **form: str) -> httpx.Response:
        fields = {"csrf": secret_of(client), "task": task, **form}
        return client.post("/ui/submissions", data=fields, files={"file": ("mine.csv", b"id,label\n")})

    grades = {name: local.user(name, scopes=["read", "grade"]) for name in ("cyd", "dan")}
    cyd, dan, reader = (browser(local, token) for token in (grades["cyd"], grades["dan"], tokens["reader"]))
    stranger = {"task": "wine", "csrf": "x"}
    assert httpx.post(f"{local.url}/ui/submissions", data=stranger, headers={"Origin": local.url}).status_code == 401
    assert submit(cyd, csrf="x" * 43).status_code == 403 and submit(cyd, csrf=secret_of(dan)).status_code == 403
    assert submit(reader).headers["location"] == "/ui/tasks"
    assert "lacks the scope grade" in reader.get("/ui/tasks").text
    assert submit(cyd, task="digitz").headers["location"] == "/ui/tasks"
    assert "There is no task" in cyd.get("/ui/tasks").text
    assert submit(cyd, task="digits").headers["location"] == "/ui/tasks/digits"
    assert "Not valid: " in cyd.get("/ui/tasks/digits").text
    made = submit(cyd).headers["location"]
    assert made.startswith("/ui/submissions/sub_") and "cyd" in cyd.get(made).text
    assert dan.get(made).status_code == 404 and made not in dan.get("/ui/tasks/wine").text
    assert made in cyd.get("/ui/tasks/wine").text
    monkeypatch.setattr(local.service, "settings", local.service.settings.model_copy(update={"max_upload_mb": 0}))
    assert submit(cyd).headers["location"] == "/ui/tasks" and "larger than 0 MB" in cyd.get("/ui/tasks").text


def test_feedback_of_a_class_is_held_back_until_its_deadline(local: LocalServer, tokens: dict[str, str]) -> None:
    parts = [{"name": "problem", "score": 1.0, "weight": 1.0, "explanation": "why", "value": 1}]
    report = {"competition_id": "leakage@wine", "score": 0.875, "details": {"facts": {"parts": parts}}}
    report |= {"submission_exists": True, "valid_submission": True, "is_lower_better": False, "task_version": "1"}
    report |= {"created_at": now().isoformat(), "submission_path": "x", "metric": "efficacy"}

    def hand_in(user: str, task: str = "leakage+planted-7@wine") -> str:
        with local.service.database.writing() as session:
            owner = session.scalars(select(User).where(User.name == user)).one()
            project = session.scalars(select(Project).where(Project.name == user)).one()
            facts = {"project_id": project.id, "user_id": owner.id, "size": 1, "sha256": "0", "report": report}
            row = Submission(id=new_id("sub"), task=task, status="done", created_at=now(), ended_at=now(), **facts)
            session.add(row)
            return row.id

    student, teacher = (browser(local, token) for token in (tokens["bob"], local.token))
    api = httpx.Client(base_url=local.url, headers={"Authorization": f"Bearer {tokens['bob']}"})
    held = {"task": "leakage@wine", "until": "2999-01-01T00:00"}
    refused = [post(student, "/ui/deadlines", **held), teacher.post("/ui/deadlines", data={"csrf": "x", **held})]
    assert [answer.status_code for answer in refused] == [409, 403]
    assert "Only administrators can delay feedback." in refused[0].text
    typed = post(teacher, "/ui/deadlines", back="/ui/tasks/leakage@wine", **held | {"until": "soon"})
    assert typed.status_code == 409 and "is not a valid time" in typed.text
    assert re.search(r'<input [^>]*name="until" value="soon"', typed.text), "what was typed is kept"
    made = hand_in("bob")

    def shown_to_student() -> list[bool]:
        pages = [student.get(f"/ui/{page}").text for page in (f"submissions/{made}", "tasks/leakage+planted-7@wine")]
        listed = api.get("/v1/submissions").json()["items"]
        return ["0.875" in text for text in (*pages, api.get(f"/v1/submissions/{made}").text, str(listed))]

    assert shown_to_student() == [True] * 4
    for until, said in (("2999-01-01T00:00", "Feedback is shown after 2999-"), ("", "when it is released")):
        assert post(teacher, "/ui/deadlines", **held | {"until": until}).status_code == 303
        assert said in teacher.get("/ui/tasks/leakage@wine").text
        assert shown_to_student() == [False] * 4
        assert "It is submitted. Feedback is shown" in student.get(f"/ui/submissions/{made}").text
    board = teacher.get("/ui/techniques").text
    assert re.search(r'<th scope="row">bob</th>.*?leakage\+planted-7@wine.*?done.*?0\.875', board, re.DOTALL)
    assert "Questions in the class" in board and "1 of 1" in board
    mine = student.get("/ui/techniques").text
    assert "Nothing has been graded yet." in mine and "1 of 1" not in mine and "0.875" not in mine
    post(teacher, "/ui/deadlines", task="leakage@wine", what="release")
    assert shown_to_student() == [True] * 4
    late = hand_in("ann")
    board = teacher.get("/ui/techniques").text
    assert late and re.search(r'<th scope="row">ann</th>.*?late', board, re.DOTALL)
    assert teacher.get("/ui/tasks/leakage@wine").status_code == 200
