"""Exported pages open without a server and without network, and are hardly larger than what they show."""

from __future__ import annotations

import gc
import os
import re
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mleredux.errors import MlereduxError
from mleredux.plugin.artifact import RunStore
from mleredux_support.commands import mleredux
from mleredux_view.links import served
from mleredux_view.local import LocalSource
from mleredux_view.site import answer, make_site
from mleredux_view.source import RunQuery
from mleredux_view.visit import Declared, Shown, Visit
from starlette.testclient import TestClient

pytestmark = pytest.mark.chromium


def test_an_export_opens_offline_and_has_the_same_runs(site: Any, browser: Any, tmp_path: Path) -> None:
    from mleredux.plugin.artifact import RunStore
    from mleredux_view.export import export
    from mleredux_view.local import LocalSource

    few = tmp_path / "runs"
    few.mkdir()
    for name in ("hostile", "done"):
        (few / site.ids[name]).symlink_to(site.runs / site.ids[name])
    assert export(LocalSource(RunStore(few)), tmp_path / "pages") > 20
    context = browser.new_context(offline=True)
    page, problems = context.new_page(), list[str]()
    page.on("dialog", lambda dialog: problems.append(dialog.message))
    page.on("console", lambda said: said.type == "error" and problems.append(said.text))
    page.goto((tmp_path / "pages" / "index.html").as_uri())
    page.get_by_label("Search runs").fill("WINE done")
    assert page.locator(".total b").inner_text() == "1" and page.locator("#rows tr:visible").count() == 1
    page.get_by_role("link", name="wine").click()
    page.locator("#curve canvas").wait_for()
    for name in ("Steps", "Versions", "Log", "Files"):
        page.get_by_role("link", name=name, exact=True).click()
        assert page.locator("[aria-current=page]", has_text=name).count() == 1
    page.get_by_role("link", name="Runs", exact=True).click()
    page.locator("#rows a").first.click()
    assert problems == []
    context.close()


def test_an_export_is_hardly_larger_than_a_long_log_which_it_has_whole(made_runs: Any, tmp_path: Path) -> None:
    from mleredux.plugin.artifact import RunStore
    from mleredux_view.export import export
    from mleredux_view.local import LocalSource

    log = b"".join(b"epoch %d loss 0.12345 accuracy 0.98765\n" % n for n in range(400_000)) + b"ValueError: no\n"
    made_runs.make_run(tmp_path / "runs", 1, status="done", log=log)
    export(LocalSource(RunStore(tmp_path / "runs")), tmp_path / "pages")
    before, after = (
        sum(path.stat().st_size for path in (tmp_path / name).rglob("*") if path.is_file())
        for name in ("runs", "pages")
    )
    assert after <= 1.2 * before
    page = next((tmp_path / "pages").rglob("log.html"))
    assert "epoch 399999 " in page.read_text() and "400,001 lines" in page.read_text()
    named = re.search(r'href="([^"]+\.txt)">the complete log', page.read_text())
    assert named is not None and (page.parent / named[1]).read_bytes() == log


def test_a_report_has_the_runs_that_were_named_and_opens_offline(site: Any, browser: Any, tmp_path: Path) -> None:
    done, long = site.ids["done"], site.ids["long"]
    told = mleredux("report", done, long[:20], "-o", str(tmp_path / "site"), "--runs-dir", str(site.runs))
    assert (told.code, told.out.split(". ")[0]) == (0, "Wrote the pages of 2 runs"), told.err
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.goto((tmp_path / "site" / "index.html").as_uri())
    assert page.locator("#rows tr").count() == 2
    assert page.locator("#rows td.w-curve svg").count() == 2
    assert str(site.runs) in page.locator(".where").inner_text()
    page.locator(f"#run-{done} a").click()
    page.locator("#curve canvas").wait_for()
    context.close()
    again = mleredux("report", "-o", str(tmp_path / "site"), "--runs-dir", str(site.runs))
    assert again.code == 1 and "is not empty" in again.err
    unknown = mleredux("report", "nothing", "-o", str(tmp_path / "other"), "--runs-dir", str(site.runs))
    assert unknown.code != 0 and "There is no run 'nothing'" in unknown.err and not (tmp_path / "other").exists()


@pytest.mark.attack
def test_holes_of_an_agents_files_are_neither_searched_nor_exported(made_runs: Any, tmp_path: Path) -> None:
    from mleredux.plugin.artifact import RunStore
    from mleredux_view.export import export
    from mleredux_view.local import LocalSource
    from mleredux_view.logfile import log_of

    log = b"".join(b"epoch %d\n" % n for n in range(20_000))
    run = made_runs.make_run(tmp_path / "runs", 1, status="done", log=log)
    for name in ("logs/agent.log", "rollout.json", "logs/resources.csv"):
        with (run / name).open("ab") as file:
            file.truncate(3 << 30)
    assert export(LocalSource(RunStore(tmp_path / "runs")), tmp_path / "pages") > 5
    written = [path for path in (tmp_path / "pages").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in written) < 10 << 20
    assert any(path.read_bytes().startswith(log) for path in written)
    log_file = log_of(run, "logs/agent.log")
    assert log_file.search(b"epoch 19999", 1) == 20_000 and log_file.search(b"epoch 20000", 1) is None
    assert [line.data for line in log_file.read(19_999, 2)] == [b"epoch 19998", b"epoch 19999"]


LABELS: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a folder": Path.mkdir,
    "a file of a terabyte": lambda path: (path.touch(), os.truncate(path, 1 << 40)),
    "nested deeply": lambda path: path.write_text("[" * 100_000),
}


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.attack
def test_a_damaged_file_of_labels_hides_no_run(make_run: Any, tmp_path: Path, kind: str) -> None:
    make_run(tmp_path, 0)
    LABELS[kind](tmp_path / "labels.json")
    assert [row["labels"] for row in LocalSource(RunStore(tmp_path)).runs(RunQuery()).rows] == [{}]


def test_the_stream_of_a_run_that_is_deleted_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mleredux_view.site._POLL_SECONDS", 0.0)
    source = LocalSource(RunStore(tmp_path))
    answered = TestClient(make_site(lambda _request: source)).get("/live?run=deleted&since=1")
    assert (answered.status_code, answered.text) == (200, "retry: 2000\n\n")


def test_a_page_that_fails_keeps_nothing_of_what_it_read(tmp_path: Path) -> None:
    class Content:
        """Stands for the content of a large file."""

    contents = []

    def fail(visit: Visit) -> Shown:
        content = Content()
        contents.append(weakref.ref(content))
        try:
            raise ValueError("it is not JSON")
        except ValueError as error:
            raise MlereduxError(f"{visit.path} is damaged.") from error

    visit = Visit(LocalSource(RunStore(tmp_path)), {}, {}, served(""))
    gc.disable()
    try:
        assert answer(Declared("", fail, "GET"), visit).status_code == 409
        assert contents[0]() is None, "memory would grow with each request until cycles are collected"
    finally:
        gc.enable()


@pytest.mark.parametrize("file", ["run.json", "report.json", "events.jsonl"])
@pytest.mark.parametrize("content", [None, b"", b"{", b"[]", b"\xff\xfe\x00"])
def test_a_damaged_file_costs_a_report_of_all_runs_at_most_one_run(
    make_run: Any, tmp_path: Path, file: str, content: bytes | None
) -> None:
    """A file whose content is None is a folder."""
    for number in range(2):
        damaged = tmp_path / "runs" / make_run(tmp_path / "runs", number)
        if number:
            (damaged / file).unlink(missing_ok=True)
            (damaged / file).mkdir() if content is None else (damaged / file).write_bytes(content)
    ended = mleredux("report", "-o", str(tmp_path / "site"), "--runs-dir", str(tmp_path / "runs"))
    assert (ended.code, ended.out.split(". ")[0]) == (0, "Wrote the pages of 2 runs"), ended.err
    assert damaged.name in (tmp_path / "site" / "index.html").read_text()
