"""Every table is sorted by its headings, and every form keeps what was typed and leads back: also without scripts."""

from __future__ import annotations

import asyncio
import html
import itertools
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest
from mleredux.errors import MlereduxError
from mleredux.models import Grants, Limits
from mleredux.plugin.artifact import RunStore
from mleredux.plugin.experiment import RunPlan
from mleredux_view import forms, local
from mleredux_view.forms import refilled
from mleredux_view.source import Launch
from mleredux_view.texts import in_order
from starlette.requests import Request

PAGES = (
    "/",
    "/?status=done&task=digits",
    "/tasks",
    "/people",
    "/tasks/digits",
    "/runs/{done}/files",
    "/runs/{done}/versions",
    "/compare?run={hostile}&run={done}",
)
HEADING = re.compile(r'<th scope="col" class="sorts [^"]*"(?: aria-sort="(\w+)")?><a href="([^"]+)">')


@pytest.fixture
def visitor(site: Any) -> Iterator[httpx.Client]:
    """A browser without scripts."""
    with httpx.Client(base_url=site.url, timeout=60, headers={"origin": site.url}) as client:
        assert client.get(site.once()).status_code == 303
        yield client


def rows(page: str) -> list[str]:
    return re.findall(r"<tr.*?</tr>", page, re.DOTALL)


@pytest.mark.parametrize("path", PAGES)
def test_every_heading_sorts_its_table_and_turns_its_order(site: Any, visitor: httpx.Client, path: str) -> None:
    path = path.format(**site.ids)
    plain = visitor.get(path).text
    links = [html.unescape(link) for _, link in HEADING.findall(plain)]
    assert links
    for link in links:
        query = parse_qs(urlsplit(link).query)
        assert parse_qs(urlsplit(path).query).items() <= query.items(), "the filters are kept"
        orders = []
        for _ in range(2):
            page = visitor.get(link)
            assert page.status_code == 200
            [(order, link)] = [(order, html.unescape(other)) for order, other in HEADING.findall(page.text) if order]
            orders.append(order)
            assert len(rows(page.text)) == len(rows(plain))
        assert sorted(orders) == ["ascending", "descending"]


@pytest.mark.parametrize("asked", ["__class__", "id.__class__", "runs.secret", "-runs", "\0", "x" * 5000])
def test_what_is_no_column_sorts_nothing(visitor: httpx.Client, asked: str) -> None:
    page = visitor.get("/tasks", params={"sort": asked})
    assert page.status_code == 200 and "aria-sort" not in page.text
    assert [row for row in rows(page.text) if "row-link" in row] == [
        row for row in rows(visitor.get("/tasks").text) if "row-link" in row
    ]


@pytest.mark.parametrize(
    ("values", "ascending"),
    [
        ([None, 3, float("nan"), 1], [1, 3, None]),
        (["b", "", "A", None], ["A", "b", "", None]),
        (["10 kB", "9 B", "1.5 MB"], ["9 B", "10 kB", "1.5 MB"]),
        (["0.91 ± 0.2", "–", "0.9 ± 0.01"], ["0.9 ± 0.01", "0.91 ± 0.2", "–"]),
        (["2026-01-02", "2026-01-01", "x"], ["2026-01-01", "2026-01-02", "x"]),
        (["1,200", "7", "a"], ["7", "1,200", "a"]),
    ],
)
def test_numbers_in_texts_are_sorted_by_their_size_and_nothing_is_last(values: list[Any], ascending: list[Any]) -> None:
    table = [{"value": {"of": value}} for value in values]
    up = [row["value"]["of"] for row in in_order(table, "value.of", True)]
    down = [row["value"]["of"] for row in in_order(table, "value.of", False)]
    assert [value for value in up if value == value] == ascending
    empty = [value for value in down if value in (None, "", "–") or value != value]
    assert down[len(down) - len(empty) :] == empty, "also in the other order"


def hidden(page: str, name: str) -> str:
    return html.unescape(re.findall(rf'name="{name}" value="([^"]*)"', page)[0])


@pytest.mark.parametrize("label", ["no label", "a b=c", '"><script>=x', "=\u00fc"])
def test_a_refused_label_keeps_the_list_the_selection_and_the_text(
    site: Any, visitor: httpx.Client, label: str
) -> None:
    listed = "/?status=done&sort=score&up=1"
    page = visitor.get(listed).text
    form = {"csrf": hidden(page, "csrf"), "back": hidden(page, "back"), "run": site.ids["done"], "label": label}
    refused = visitor.post("/actions/label", data=form)
    assert refused.status_code == 409
    assert 'role="alert"' in refused.text and "NAME=VALUE" in refused.text
    assert f'value="{html.escape(label)}"' in refused.text
    [box] = re.findall(rf'<input [^>]*value="{site.ids["done"]}"[^>]*>', refused.text)
    assert "checked" in box
    assert len(rows(refused.text)) == len(rows(page))
    assert re.findall(r'aria-sort="(\w+)"', refused.text) == ["ascending"]


@pytest.mark.parametrize("query", ["", "?status=done&q=digits", "?sort=task&up=1&agent=x%26y", "?q=%C3%BC+%2B"])
def test_an_action_leads_back_to_the_list_as_it_was(site: Any, visitor: httpx.Client, query: str) -> None:
    page = visitor.get(f"/{query}").text
    form = {"csrf": hidden(page, "csrf"), "back": hidden(page, "back"), "run": site.ids["done"]}
    to = urlsplit(visitor.post("/actions/stop", data=form).headers["location"])
    assert (to.path, parse_qs(to.query)) == ("/", parse_qs(query[1:]))
    assert len(rows(visitor.get(f"/?{urlencode({'rows': 5000})}").text)) > 20


@pytest.mark.attack
@pytest.mark.parametrize(
    "back", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:1", "/\r\nX: y"]
)
def test_no_form_leads_to_another_site(site: Any, visitor: httpx.Client, back: str) -> None:
    secret = hidden(visitor.get("/").text, "csrf")
    form = {"csrf": secret, "back": back, "run": site.ids["done"]}
    assert visitor.post("/actions/stop", data=form).headers["location"] == "/"
    refused = visitor.post("/actions/label", data={**form, "label": "none"})
    assert refused.status_code == 409 and "evil" not in refused.text


@pytest.mark.parametrize(("field", "wrong"), [("time_limit", "soon"), ("task", "digts"), ("name", "a b/c")])
def test_a_refused_form_of_a_plugin_keeps_what_was_typed(visitor: httpx.Client, field: str, wrong: str) -> None:
    page = visitor.get("/tasks/digits").text
    form = {"csrf": hidden(page, "csrf"), "back": hidden(page, "back")}
    form |= {"task": "digits", "name": "ada", "time_limit": "3h", "feedback": "later"} | {field: wrong}
    refused = visitor.post("/people/start", data=form)
    assert refused.status_code in (404, 409), refused.text[:200]
    assert 'role="alert"' in refused.text
    for name in ("name", "time_limit"):
        assert re.search(rf'<input name="{name}"[^>]* value="{html.escape(form[name])}"', refused.text), name
    assert '<option value="later" selected' in refused.text


def test_only_the_form_that_was_sent_is_filled_and_no_secret_is() -> None:
    page = (
        '<form action="/a"><input name="x"><input type="password" name="p"><input type="hidden" name="h" value="1">'
        '<input type="file" name="f"><input type="radio" name="r" value="1" checked>'
        '<input type="radio" name="r" value="2">'
        '<textarea name="t">old</textarea></form>\n<form action="/b"><input name="x" value="other"></form>'
    )
    typed = {"x": ['"<&'], "p": ["secret"], "h": ["2"], "f": ["z"], "r": ["2"], "t": ["\n</textarea><b>"]}
    shown = refilled(page, "/a", typed)
    assert '<input name="x" value="&quot;&lt;&amp;">' in shown and '<input name="x" value="other">' in shown
    assert "secret" not in shown and 'value="z"' not in shown and 'name="h" value="1"' in shown
    assert re.findall(r'value="(\d)" checked', shown) == ["2"]
    assert "\n\n&lt;/textarea&gt;&lt;b&gt;</textarea>" in shown


FILE = b'--b\r\nContent-Disposition: form-data; name="f%d"; filename="a.csv"\r\n\r\n'
UPLOADS: dict[str, Callable[[], Iterator[bytes]]] = {
    "one file": lambda: iter([FILE % 0, *[bytes(1 << 16)] * 40]),
    "several files": lambda: (part for at in range(40) for part in (FILE % at, bytes(1 << 16), b"\r\n")),
    "a file that does not end": lambda: itertools.chain([FILE % 0], itertools.repeat(bytes(1 << 16))),
}


@pytest.mark.attack
@pytest.mark.parametrize("upload", UPLOADS)
def test_files_that_are_too_large_are_refused_while_they_arrive(monkeypatch: pytest.MonkeyPatch, upload: str) -> None:
    monkeypatch.setattr(forms, "MAX_FILES_BYTES", 1 << 20)
    consumed = 0

    async def receive() -> dict[str, Any]:
        nonlocal consumed
        consumed += len(piece := next(pieces))
        return {"type": "http.request", "body": piece, "more_body": True}

    async def read() -> None:
        scope = {"type": "http", "method": "POST", "headers": [(b"content-type", b"multipart/form-data; boundary=b")]}
        async with AsyncExitStack() as stack:
            await forms.read_form(Request(scope, receive), stack)

    pieces = UPLOADS[upload]()
    with pytest.raises(forms.TooLarge):
        asyncio.run(read())
    assert consumed < 3 << 19


@pytest.mark.attack
@pytest.mark.parametrize("length", [1 << 40, (2 << 30) + (1 << 21)])
def test_a_request_that_announces_too_much_is_refused_unread(site: Any, visitor: httpx.Client, length: int) -> None:
    page = urlsplit(site.url)
    cookies = "; ".join(f"{name}={value}" for name, value in visitor.cookies.items())
    with socket.create_connection((page.hostname, page.port), timeout=30) as connection:
        connection.sendall(
            f"POST /actions/stop HTTP/1.1\r\nHost: {page.netloc}\r\nOrigin: {site.url}\r\nCookie: {cookies}\r\n"
            f"Content-Type: multipart/form-data; boundary=b\r\nContent-Length: {length}\r\n\r\n".encode()
        )
        answer = ""
        while "request is too large" not in answer:
            answer += (piece := connection.recv(1 << 16)).decode()
            assert piece, answer
    assert answer.startswith("HTTP/1.1 413")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Commands of the processes that would execute runs."""
    commands = list[list[str]]()
    monkeypatch.setattr(local.subprocess, "Popen", lambda command, **_how: commands.append(command))
    return commands


def test_a_run_that_is_requested_again_differs_in_nothing_but_its_experiment(
    tmp_path: Path, started: list[list[str]]
) -> None:
    store = RunStore(tmp_path / "runs")
    first = store.create(
        RunPlan(
            task="digits", agent="dummy", sandbox="process", seed=7, network="gateway", options={"depth": 3},
            limits=Limits(memory_mb=99, llm_calls=2, llm_cost_usd=0.5, on_budget="stop", retries={"agent_crashed": 1}),
            grants=Grants(variables=("A",), hosts=("pypi.org",), llm_models=("m",)), obfuscated=True, context="more",
            verify=True, experiment="trees", arm="few",
        ),
        tmp_path / "data",
    )  # fmt: skip
    [sentence] = local.LocalSource(store).retry([first.id])
    [again] = [store.get(name) for name in store.ids() if name != first.id]
    assert again.id in sentence and [again.id in command for command in started] == [True]
    own = {"id", "created_at", "experiment", "arm"}
    assert again.spec.model_dump(exclude=own) == first.spec.model_dump(exclude=own)
    assert (again.spec.experiment, again.spec.arm) == (None, None)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"sandbox": "no-such"}, "no-such"),
        ({"agent": "no-such"}, "no-such"),
        ({"agent": "aide", "sandbox": "process"}, "isolation"),
        ({"options": {"no-such": 1}}, "no-such"),
        ({"seeds": (-1,)}, "seed"),
    ],
)
def test_a_run_that_cannot_start_is_refused_in_the_form(
    tmp_path: Path, started: list[list[str]], wrong: dict[str, Any], sentence: str
) -> None:
    source = local.LocalSource(RunStore(tmp_path / "runs"), str(tmp_path / "data"))
    with pytest.raises(MlereduxError, match=sentence):
        list(source.launch(Launch(**{"task": "digits", "agent": "dummy", **wrong})))
    assert not started and not list(source.store.ids())


@pytest.mark.parametrize("seeds", ["5", "5 6"])
def test_one_requested_run_is_shown_and_several_are_listed(
    visitor: httpx.Client, started: list[list[str]], seeds: str
) -> None:
    page = visitor.get("/new").text
    assert re.search('<option value="aide" label="[^"]*language model[^"]*isolated', page)
    form = {"csrf": hidden(page, "csrf"), "back": hidden(page, "back"), "task": "digits", "agent": "dummy"}
    to = visitor.post("/actions/launch", data={**form, "seeds": seeds, "sandbox": "process"}).headers["location"]
    ids = [command[command.index("--resume") + 1] for command in started]
    assert to == (f"/runs/{ids[0]}" if len(ids) == 1 else "/") and len(ids) == len(seeds.split())
    page = visitor.get(to).text
    assert all(f"Requested {one}." in page for one in ids)
