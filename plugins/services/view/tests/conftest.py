"""A browser, and pages over runs that were made for the tests."""

from __future__ import annotations

import importlib.util
import json
import shutil
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
import uvicorn
from mleredux._core.store.files import FileLock
from mleredux.plugin.artifact import RunStore
from mleredux.plugin.command import current
from mleredux.plugin.experiment import Plan
from mleredux.plugin.files import readable_path
from mleredux_testing.pytest_plugin import skip_or_fail
from mleredux_view.guard import ONCE, Guard
from mleredux_view.local import LocalSource
from mleredux_view.site import make_site

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

HERE = Path(__file__).parent
HOSTILE = "<img src=x onerror=alert(1)>\"'></script><script>alert(2)</script>{{7*7}}\u202e javascript:alert(3)"


def _load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


made_runs = _load("made_runs")
PLAN = {
    "experiment": {"name": "trees", "question": "Do more trees help?", "tasks": ["digits", "wine"], "seeds": [0, 1, 2]},
    "arms": {"few": {"agent": "dummy"}, "many": {"agent": "baseline"}},
}


class Site:
    """Pages that are served by a thread.

    Attributes:
        runs: The runs directory.
        url: Without the one-time secret.
        ids: Runs of the directory, by what is particular to them.
        worked_on: Held by the process that works on the run that goes on.
    """

    def __init__(self, runs: Path) -> None:
        self.runs, self.ids = runs, dict[str, str]()
        self.worked_on: FileLock | None = None
        listener = socket.create_server(("127.0.0.1", 0))
        self.port = listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        source = LocalSource(RunStore(runs))
        self.guard = Guard(make_site(lambda _request: source), self.port)
        config = uvicorn.Config(self.guard, log_config=None, timeout_graceful_shutdown=1)
        self.server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self.server.run, kwargs={"sockets": [listener]}, daemon=True)
        self._thread.start()
        while not self.server.started:
            time.sleep(0.01)

    def once(self) -> str:
        """A one-time address."""
        self.guard.once = "secret-of-the-test"
        return f"{self.url}/?{ONCE}={self.guard.once}"

    def close(self) -> None:
        """Stop it."""
        self.server.should_exit = True
        self._thread.join(timeout=10)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Thirty runs, one of them hostile in every field, one with a long log and rollout, one that goes on."""
    runs = tmp_path_factory.mktemp("pages") / "runs"
    for number in range(26):
        made_runs.make_run(runs, number, status="failed" if number % 5 == 0 else "done")
    ids = {
        "hostile": made_runs.make_run(
            runs, 30, task=HOSTILE, agent=HOSTILE, status="failed", message=HOSTILE, log=HOSTILE.encode() + b"\n",
            code=HOSTILE, said=HOSTILE, experiment=HOSTILE, arm=HOSTILE,
        ),
        "long": made_runs.make_run(
            runs, 31, status="done", steps=3_000, log=b"".join(b"epoch %d\n" % n for n in range(60_000))
        ),
        "live": made_runs.make_run(runs, 32, status="running"),
        "done": made_runs.make_run(runs, 33, status="done", task="wine"),
    }  # fmt: skip
    person = made_runs.make_run(runs, 34, status="done", task="leakage+planted-7@wine", agent="human:ada")
    (ids["hostile"] / "output" / "page.html").write_text("<script>alert(4)</script>")
    (ids["hostile"] / "output" / "picture.svg").write_text(
        "<svg xmlns='http://www.w3.org/2000/svg' onload='alert(5)'/>"
    )
    (ids["hostile"] / "output" / "table.csv").write_text(f"id,label\n1,{HOSTILE}\n")
    named = HOSTILE.replace("/", "-")
    (ids["hostile"] / "output" / f"{named}.md").write_text(HOSTILE)
    (ids["hostile"] / "logs" / f"{named}.log").write_text(HOSTILE)
    (runs / "labels.json").write_text(json.dumps({ids["hostile"].name: {HOSTILE: HOSTILE}}))
    site = Site(runs)
    site.ids = {name: path.name for name, path in ids.items()}
    site.worked_on = FileLock(ids["live"] / ".lock")
    site.worked_on.acquire(blocking=True)
    site.ids |= {
        "person": person.name,
        "hostile_task": quote(HOSTILE, safe=""),
        "named": quote(readable_path(named.encode())),
    }
    yield site
    site.worked_on.release()
    site.close()


@pytest.fixture(scope="session", name="made_runs")
def _made_runs() -> ModuleType:
    return made_runs


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium; while it is open, an event loop runs in this thread, in which others could not run one."""
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium")
    if program is None:
        skip_or_fail("chromium", "there is no Chromium (`.ci/chromium` installs it)")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield launched
        launched.close()


class Watched:
    """A page of the browser, signed in, and what went wrong on it."""

    def __init__(self, page: Page, site: Site) -> None:
        self.page, self.site = page, site
        self.problems: list[str] = []
        self.requests: list[str] = []
        page.on("dialog", self._dialog)
        page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        page.on("console", lambda said: said.type == "error" and self.problems.append(f"console: {said.text}"))
        page.on("request", lambda request: self.requests.append(request.url))

    def open(self, path: str) -> Page:
        """Go to a path of the site."""
        self.page.goto(self.site.url + path)
        return self.page

    def foreign(self) -> list[str]:
        """Requests that left the site."""
        return [url for url in self.requests if not url.startswith((self.site.url + "/", "data:"))]

    def _dialog(self, dialog: Any) -> None:
        self.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()


@pytest.fixture
def watched(site: Site, browser: Browser) -> Iterator[Watched]:
    """A new page; the test fails if it opened a dialog, logged an error, or asked another site."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    seen = Watched(context.new_page(), site)
    seen.page.goto(site.once())
    yield seen
    context.close()
    assert seen.problems == []
    assert seen.foreign() == []


@pytest.fixture(scope="session")
def site_of() -> type[Site]:
    """Serves a runs directory."""
    return Site


@pytest.fixture(scope="session")
def make_run() -> Any:
    """Makes a run: see `made_runs.make_run`."""
    return made_runs.make_run


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """An experiment of twelve cells, ten of them with a run; tests of forms change it."""
    from mleredux_experiments.execution.experiment import start

    runs = tmp_path_factory.mktemp("experiment") / "runs"
    start(Plan.model_validate(PLAN), current(), runs_dir=runs, data_dir=runs.parent / "data")
    cells = [(task, arm, seed) for seed in (0, 1, 2) for task in ("digits", "wine") for arm in ("few", "many")]
    for task, arm, seed in cells[:10]:
        number = 5 * cells.index((task, arm, seed)) + seed
        agent = str(PLAN["arms"][arm]["agent"])  # type: ignore[index]
        made_runs.make_run(runs, number, task=task, agent=agent, status="done", experiment="trees", arm=arm)
    site = Site(runs)
    site.ids = dict(zip(("first", "second"), sorted(RunStore(runs).ids()), strict=False))
    yield site
    site.close()
