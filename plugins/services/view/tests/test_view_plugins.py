"""Pages and panels of plugins: shown with the run's, escaped, and isolated when they fail."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mleredux._core.plugins.catalogue import set_current
from mleredux.plugin.artifact import RunStore
from mleredux.plugin.command import Catalogue
from mleredux_view import plugins, site
from mleredux_view.export import export
from mleredux_view.local import LocalSource
from mleredux_view.plugins import panels_of
from mleredux_view.site import all_pages, answer
from mleredux_view.visit import Visit

PLUGIN = """
from mleredux.plugin import hookimpl
from mleredux.plugin.page import Page, Panel

@hookimpl
def mleredux_register_pages():
    return [
        Page(path="/words", template="words.html.j2", function="third_party:words", menu="Words", selection="Count"),
        Page(path="/broken", template="words.html.j2", function="third_party:broken", menu="Broken"),
        Page(path="/exits", template="words.html.j2", function="third_party:exits"),
        Panel(title="Good", template="panel.html.j2", function="third_party:panel"),
        Panel(title="Absent", template="panel.html.j2", function="third_party:nothing"),
        Panel(title="Bad", template="missing.html.j2", function="third_party:panel"),
        Panel(title="Gone", template="panel.html.j2", function="third_party.gone:panel"),
    ]

def words(visit): return {"said": "<script>alert(1)</script>", "rows": visit.rows(task=["digits"])}
def broken(visit): raise ZeroDivisionError("no words")
def exits(visit): raise SystemExit("no more")
def panel(visit, run): return {"said": "<b>" + run.spec.task}
def nothing(visit, run): return None
"""
OTHER = """
from mleredux.plugin import hookimpl

@hookimpl
def mleredux_register_pages(): return ["a text"]
"""
EXITING = OTHER.replace('return ["a text"]', 'yield from range(0); raise SystemExit("later")')
PAGE = """{% extends "layout.html.j2" %}{% set here = "/words" %}
{% block content %}<main id="main">{{ said }} {{ rows|length }}</main>
<a href="{{ link("leads", "nowhere") }}">x</a>{% endblock %}"""


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_run: Any) -> Iterator[LocalSource]:
    """One run on `digits`, and two plugins more."""
    folder = tmp_path / "plugins" / "third_party"
    (folder / "templates").mkdir(parents=True)
    (folder / "__init__.py").write_text(PLUGIN)
    (folder / "templates" / "words.html.j2").write_text(PAGE)
    (folder / "templates" / "panel.html.j2").write_text("<p>{{ said }}</p>")
    (folder.parent / "other_party.py").write_text(OTHER)
    (folder.parent / "exiting_party.py").write_text(EXITING)
    monkeypatch.syspath_prepend(str(folder.parent))
    make_run(tmp_path / "runs", 0)
    set_current(Catalogue(load=["third_party", "other_party", "exiting_party"]))
    forget = (plugins.added.cache_clear, site.environment.cache_clear)
    for clear in forget:
        clear()
    yield LocalSource(RunStore(tmp_path / "runs"))
    set_current(None)
    for clear in forget:
        clear()


def visit_of(source: LocalSource) -> Visit:
    return Visit(source, {}, {}, lambda *parts, **_query: "/" + "/".join(map(str, parts)))


def page_at(source: LocalSource, path: str) -> tuple[int, str]:
    response = answer(next(one for one in all_pages() if one.path == path), visit_of(source))
    return response.status_code, bytes(response.body).decode()


def test_a_page_is_in_the_menu_and_escapes_its_values(source: LocalSource) -> None:
    status, text = page_at(source, "/words")
    assert status == 200 and "&lt;script&gt;alert(1)&lt;/script&gt; 1</main>" in text
    assert 'href="/words" aria-current="page">Words</a>' in text
    assert 'formaction="/words"' in page_at(source, "/")[1]


def test_a_page_that_fails_says_so(source: LocalSource) -> None:
    status, text = page_at(source, "/broken")
    assert (
        status == 409
        and "The page /broken of plugin &#39;third_party&#39; failed (ZeroDivisionError: no words)." in text
    )
    status, text = page_at(source, "/exits")
    assert status == 409 and "The page /exits of plugin &#39;third_party&#39; failed (SystemExit: no more)." in text


def test_panels_fail_alone(source: LocalSource) -> None:
    visit = visit_of(source)
    found = {one.title: one.html for one in panels_of(visit, visit.open(visit.rows()[0]["id"]))}
    assert found["Good"] == "<p>&lt;b&gt;digits</p>" and "Absent" not in found
    assert "failed (TemplateNotFound" in found["Bad"] and "failed (ModuleNotFoundError" in found["Gone"]


def test_a_plugin_that_registers_something_else_is_reported(source: LocalSource) -> None:
    from mleredux.plugin.command import current

    page_at(source, "/words")
    assert any("other_party" in said and "is not a Page, Panel or Action" in said for said in current().problems())
    assert any("exiting_party" in said and "SystemExit: later" in said for said in current().problems())


def test_an_export_follows_the_menu(source: LocalSource, tmp_path: Path) -> None:
    export(source, tmp_path / "pages")
    index = (tmp_path / "pages" / "index.html").read_text()
    assert (tmp_path / "pages" / re.findall(r'href="([^"]+)">Words<', index)[0]).is_file()


@pytest.mark.parametrize(("uri", "linked"), [("https://*****@mlflow.example", True), ("javascript:alert(1)//x", False)])
def test_the_panel_of_mlflow(source: LocalSource, uri: str, linked: bool) -> None:
    visit = visit_of(source)
    run = visit.open(visit.rows()[0]["id"])
    (run.path / "mlflow.json").write_text(json.dumps({uri: {"mlflow_run_id": "a<b", "experiment_id": "7"}}))
    html = next(one.html for one in panels_of(visit, run) if one.title == "MLflow")
    assert ('href="https://mlflow.example/#/experiments/7/runs/a%3Cb"' in html) == linked
    assert ("href" in html) == linked and "a&lt;b" in html
