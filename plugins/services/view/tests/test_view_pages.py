"""Each page's story in a real browser; no page has a violation that axe-core finds, or executes what agents wrote."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
from mleredux_view.site import all_pages

pytestmark = pytest.mark.chromium
AXE = (Path(__file__).parent / "axe.min.js").read_text(encoding="utf-8")
PAGES = (
    "/",
    "/?q=nothing-has-this",
    "/failures",
    "/nothing",
    "/new?task=digits",
    "/tasks",
    "/tasks/digits",
    "/tasks/leakage+planted-7@wine",
    "/tasks/{hostile_task}",
    "/techniques",
    "/people",
    "/people/{person}",
    "/experiments",
    "/runs/{done}",
    "/runs/{live}",
    "/runs/{hostile}",
    "/runs/{hostile}/steps",
    "/runs/{done}/steps?error=1",
    "/runs/{long}/steps?page=60",
    "/runs/{done}/versions",
    "/runs/{hostile}/versions/1",
    "/runs/{done}/versions/2",
    "/runs/{hostile}/log?q=alert",
    "/runs/{long}/log?line=30000",
    "/runs/{hostile}/files",
    "/runs/{hostile}/files?path=output/table.csv",
    "/runs/{hostile}/files?path=output/picture.svg",
    "/runs/{hostile}/files?path=rollout.json",
    "/runs/{hostile}/files?path=output/{named}.md",
    "/runs/{hostile}/log?name=logs/{named}.log",
    "/runs/{hostile}/versions",
    "/pairs/{hostile}/{done}",
    "/compare?run={hostile}&run={done}",
)
ASKEW = """() => {
  const box = (one) => one.getBoundingClientRect(), lines = (one) => box(one).height / parseFloat(getComputedStyle(one).lineHeight);
  const beside = (table) => table.tHead?.offsetParent && table.tBodies[0] && box(table.tHead).bottom > box(table.tBodies[0]).top + 1;
  return [...document.querySelectorAll("table, .step .n")].filter((one) => one.matches("table") ? beside(one) : lines(one) > 1.5).map((one) => one.outerHTML);
}"""  # noqa: E501
"""Tables whose headings are not above their rows, and numbers of steps that are broken across lines."""
ELSEWHERE = {"/experiments/{name}": "test_view_experiments.py"}
"""Pages that another file opens in the same way."""


def texts(page: Any, selector: str) -> list[str]:
    return [text.strip() for text in page.locator(selector).all_text_contents()]


def test_every_page_is_among_them() -> None:
    declared = [one.path for one in all_pages() if one.method == "GET" and not one.path.endswith((".zip", "/raw"))]
    opened = [path.partition("?")[0] for path in PAGES]
    missed = [
        path for path in declared if not any(re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", path), one) for one in opened)
    ]
    assert set(missed) == ELSEWHERE.keys()


@pytest.mark.parametrize("path", PAGES)
def test_no_page_has_a_violation_and_none_executes_what_agents_wrote(watched: Any, path: str) -> None:
    page = watched.open(path.format(**watched.site.ids))
    if path in ("/nothing", "/tasks/{hostile_task}"):
        page.wait_for_timeout(100)
        assert "404" in watched.problems.pop()
    for width, scheme in ((1280, "dark"), (400, "light")):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate(ASKEW) == []
        # Beside the page's policy, as a debugger's code: the policy allows no other scripts.
        page.context.new_cdp_session(page).send("Runtime.evaluate", {"expression": AXE})
        found = page.evaluate("axe.run({resultTypes: ['violations']}).then((result) => result.violations)")
        told = [(one["id"], one["nodes"][0]["html"][:200], one["nodes"][0]["failureSummary"][:300]) for one in found]
        assert told == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page scrolls sideways"


def test_runs_are_found_by_facets_search_and_sorting_and_the_address_has_it_all(watched: Any) -> None:
    page = watched.open("/")
    assert page.locator("#rows tr").count() == 31
    page.locator("#facet-status label", has_text="failed").click()
    page.locator(".total b", has_text="7").wait_for()
    assert set(texts(page, "#rows .state")) == {"failed"}
    page.locator("#search").fill("wine")
    page.wait_for_url(re.compile("q=wine"))
    page.wait_for_function("document.querySelectorAll('#rows tr').length < 6")
    listed = texts(page, "#rows .row-link")
    assert listed and all("wine" in one for one in listed)
    page.reload()
    assert texts(page, "#rows .row-link") == listed
    page.go_back()
    page.locator(".total b", has_text="7").wait_for()
    watched.open("/?sort=score")
    scores = [float(text) for text in texts(page, "#rows .score") if text != "–"]
    assert scores == sorted(scores, reverse=True)
    assert {len(text.partition(".")[2]) for text in texts(page, "#rows .score")} <= {0, 5}, "they are aligned"


def test_the_clock_of_a_run_whose_process_was_killed_stands_still(watched: Any) -> None:
    address = f"/runs/{watched.site.ids['live']}"
    page = watched.open(address)
    assert page.locator("#chips [data-since]").count() == 1
    page.locator("#live:not([hidden])").wait_for()
    watched.site.worked_on.release()
    page.locator("#chips", has_text="interrupted").wait_for(timeout=90_000)
    watched.site.worked_on.acquire(blocking=True)
    assert not page.locator("[data-since]").count()


@pytest.mark.parametrize("width", [360, 400])
def test_scores_are_seen_whole_on_a_phone(watched: Any, width: int) -> None:
    watched.page.set_viewport_size({"width": width, "height": 900})
    watched.site.worked_on.release()
    page = watched.open("/")
    page.locator("#rows .state", has_text="interrupted").wait_for(timeout=90_000)  # the longest word
    watched.site.worked_on.acquire(blocking=True)
    right = "(found) => Math.max(...found.map((one) => one.getBoundingClientRect().right))"
    table, scores = (page.locator(one).evaluate_all(right) for one in (".card-table", "thead .right, #rows .score"))
    assert scores <= table


def test_rows_follow_what_happens_on_disk(watched: Any) -> None:
    page = watched.open("/?q=" + watched.site.ids["live"])
    page.locator("#live:not([hidden])").wait_for()
    log = watched.site.runs / watched.site.ids["live"] / "events.jsonl"
    before = log.read_text()
    event = {"seq": before.count("\n"), "time": "2026-11-22T10:00:00+00:00", "type": "state"}
    log.write_text(before + json.dumps({**event, "data": {"state": "grading"}}) + "\n")
    page.locator("#rows .state", has_text="grading").wait_for(timeout=90_000)
    log.write_text(before)


def test_keys_go_through_runs_and_into_one(watched: Any) -> None:
    page = watched.open("/")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("j")
    chosen = page.locator("#rows tr.at .row-link").get_attribute("href")
    page.keyboard.press("Enter")
    page.wait_for_url("**" + str(chosen))


FOCUS = """() => {
  const { tagName, innerText, name } = document.activeElement, style = getComputedStyle(document.activeElement);
  const { width, height } = document.activeElement.getBoundingClientRect();
  return [tagName, innerText.trim() || name, style.outlineStyle !== "none" && width > 0 && height > 0];
}"""


def test_the_list_is_used_by_keys_alone_and_the_focus_is_seen(watched: Any) -> None:
    page = watched.open("/?q=wine")
    walked = []
    while not walked or walked[-1][1] != "run":  # up to the box of the first run
        page.keyboard.press("Tab")
        walked.append(page.evaluate(FOCUS))
        assert len(walked) < 100
    assert walked[0][1] == "Skip to the content" and all(seen for _, _, seen in walked)
    page.keyboard.press("Space")
    page.get_by_text("1 selected").wait_for()
    for _ in walked:  # back to the button
        if page.evaluate(FOCUS)[1] == "Label":
            break
        page.keyboard.press("Shift+Tab")
    page.keyboard.press("Shift+Tab")
    page.keyboard.type("seen=by keys")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_role("status").filter(has_text="Labeled").wait_for()
    watched.open("/?q=seen%3Dby")
    assert texts(page, "#rows .labels .chip") == ["seen by keys"]
    (watched.site.runs / "labels.json").write_text("{}")


def test_enter_in_the_box_of_labels_labels_and_stops_nothing(watched: Any) -> None:
    page = watched.open("/?q=wine")
    page.locator("#rows input[name=run]").first.check()
    page.get_by_text("1 selected").wait_for()
    page.get_by_label("Label for the selected runs").fill("pressed=enter")
    page.keyboard.press("Enter")
    page.get_by_role("status").filter(has_text="Labeled").wait_for()
    (watched.site.runs / "labels.json").write_text("{}")


@pytest.fixture
def many(site_of: Any, made_runs: Any, tmp_path: Path) -> Any:
    """More runs than a page of the list has: 36 of digits by one agent, 36 of wine by another."""
    runs = tmp_path / "many"
    for number in range(72):
        task, agent = (("digits", "baseline"), ("wine", "aide"))[number % 2]
        made_runs.make_run(runs, number, status="done", task=task, agent=agent, steps=2)
    return site_of(runs)


def test_all_runs_that_match_are_selected_not_only_those_shown(many: Any, browser: Any) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(many.once())
    assert page.locator("#rows input[name=run]").count() == 50
    page.check("#all")
    page.get_by_text("All 72 matching runs are selected").wait_for()
    page.click("button:text-is('Compare')")
    table = page.locator("main section").first.locator("tbody")
    assert texts(page, "main section:first-of-type tbody td:nth-of-type(1)") == ["36", "36"], table.inner_text()
    page.goto(f"{many.url}/?task=digits")
    page.check("#all")
    page.get_by_text("All 36 matching runs are selected").wait_for()
    page.get_by_label("Label for the selected runs").fill("all=yes")
    page.keyboard.press("Enter")
    page.get_by_text("… and 26 more.").wait_for()
    assert {tuple(labels.items()) for labels in json.loads((many.runs / "labels.json").read_text()).values()} == {
        (("all", "yes"),)
    }
    page.goto(f"{many.url}/?q=all%3Dyes")
    assert page.locator(".total b").inner_text() == "36"
    page.check("#all")
    page.locator("#rows input[name=run]").first.uncheck()
    page.get_by_text("35 selected").wait_for()
    page.get_by_label("Label for the selected runs").fill("all=")
    page.keyboard.press("Enter")
    page.get_by_role("status").filter(has_text="Removed").wait_for()
    page.goto(f"{many.url}/?q=all%3Dyes")
    assert page.locator(".total b").inner_text() == "1"
    context.close()


def test_a_refused_form_keeps_what_was_typed(watched: Any) -> None:
    page = watched.open("/new")
    typed = {"task": "digts", "agent": "dummy", "seeds": "3, 4", "time_limit": "20m", "options": "a=1\nb=<2>"}
    for name, value in typed.items():
        page.locator(f"[name={name}]").fill(value)
    page.locator("select[name=sandbox]").select_option("process")
    for wrong, sentence in (
        ({}, "digts"),
        ({"task": "digits", "seeds": "x"}, "whole numbers"),
        ({"seeds": "1", "time_limit": "?"}, "duration"),
    ):
        for name, value in wrong.items():
            page.locator(f"[name={name}]").first.fill(value)
        typed |= wrong
        page.get_by_role("button", name="Run", exact=True).click()
        page.get_by_role("alert").filter(has_text=sentence).wait_for()
        assert {name: page.locator(f"[name={name}]").first.input_value() for name in typed} == typed
        assert page.locator("select[name=sandbox]").input_value() == "process"
        if not wrong:
            assert page.get_by_role("button", name="Run with task digits", exact=True).is_visible()
    watched.problems.clear()


def test_a_phone_shows_medal_time_and_date_and_selects(watched: Any) -> None:
    watched.page.set_viewport_size({"width": 390, "height": 900})
    page = watched.open("/?medal=gold")
    line = page.locator("#rows .phone").first
    assert re.fullmatch(r"gold · .*\d (s|min|h).* · 20\d\d-\d\d-\d\d \d\d:\d\d", line.inner_text())
    page.locator("#rows input[name=run]").first.check()
    page.get_by_text("1 selected").wait_for()
    assert page.get_by_role("link", name="New run").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("width", [900, 1280, 1440])
def test_the_list_shows_when_runs_were_requested(watched: Any, width: int) -> None:
    watched.page.set_viewport_size({"width": width, "height": 900})
    page = watched.open("/")
    assert page.locator("#rows .w-created").first.is_visible()
    box = page.locator(".card-table").evaluate("(one) => one.scrollWidth - one.clientWidth")
    assert box <= 1, "the table scrolls sideways"


def test_a_chart_takes_the_colors_of_another_scheme(watched: Any) -> None:
    page = watched.open(f"/runs/{watched.site.ids['done']}")
    used = """() => {
      const made = window.strokes = new Set(), plain = CanvasRenderingContext2D.prototype.stroke;
      CanvasRenderingContext2D.prototype.stroke = function (...given) {
        made.add(this.strokeStyle);
        plain.apply(this, given);
      };
    }"""
    page.evaluate(used)
    for scheme in ("dark", "light"):
        page.evaluate("window.strokes.clear()")
        page.emulate_media(color_scheme=scheme)
        accent = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--accent').trim()")
        page.wait_for_function("(accent) => window.strokes.has(accent)", arg=accent)


def test_a_run_shows_its_score_over_time_and_what_each_version_changed(watched: Any) -> None:
    page = watched.open(f"/runs/{watched.site.ids['done']}")
    chart = page.locator("#curve .chart")
    assert chart.locator("canvas").count() == 1
    assert [level["name"] for level in json.loads(str(chart.get_attribute("data-chart")))["levels"]] == [
        "median", "bronze", "silver", "gold",
    ]  # fmt: skip
    page.get_by_role("link", name="Versions", exact=True).click()
    page.locator("#rows a", has_text="changes").first.click()
    assert any("Forest(trees=" in text for text in texts(page, ".diff ins"))
    assert any("Forest(trees=" in text for text in texts(page, ".diff del"))


_DRAWN = """([levels]) => new Promise((resolve) => {
  const texts = [], plain = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
    texts.push({ text, x, y, width: this.measureText(text).width, align: this.textAlign });
    return plain.apply(this, arguments);
  };
  const box = document.querySelector("#curve .chart"), chart = JSON.parse(box.dataset.chart);
  box.dataset.chart = JSON.stringify({ ...chart, levels });
  box.replaceChildren();
  document.dispatchEvent(new Event("htmx:after:swap"));
  setTimeout(() => resolve(texts), 300);
})"""


def test_names_of_close_medals_stay_apart_and_the_axes_have_labels(watched: Any) -> None:
    page = watched.open(f"/runs/{watched.site.ids['done']}")
    chart = json.loads(str(page.locator("#curve .chart").get_attribute("data-chart")))
    middle = sum(chart["range"]) / 2
    levels = [{"name": name, "value": middle + step * 1e-4} for step, name in enumerate(("silver", "gold", "bronze"))]
    drawn = page.evaluate(_DRAWN, [levels])
    names = {one["text"]: one for one in drawn if one["text"] in ("gold", "silver", "bronze")}
    assert len(names) == 3 and all(one["align"] == "right" for one in names.values())
    ends = sorted((one["x"] - one["width"], one["x"]) for one in names.values())
    assert all(end < start for (_, end), (start, _) in itertools.pairwise(ends))
    assert {chart["x"], chart["series"][0]["label"]} <= {one["text"] for one in drawn}


def test_a_failed_run_leads_to_its_error(watched: Any) -> None:
    page = watched.open("/failures")
    group = page.locator("section", has_text=re.compile("KeyError|ValueError|MemoryError")).first
    line = group.locator("pre").inner_text()
    group.locator("a.chip").first.click()
    assert texts(page, ".lines .at span") == [line]
    assert "Traceback (most recent call last):" in texts(page, ".lines .trace span")


def test_a_long_log_opens_at_its_end_and_is_searched(watched: Any) -> None:
    page = watched.open(f"/runs/{watched.site.ids['long']}/log")
    assert texts(page, ".lines li:last-child span") == ["epoch 59999"]
    assert page.locator(".lines li").count() < 500
    page.locator("#log-search").fill("EPOCH 4321")
    page.keyboard.press("Enter")
    page.locator(".lines .at").wait_for()
    assert texts(page, ".lines .at span") == ["epoch 4321"]
    page.get_by_role("button", name="Next").click()
    page.locator(".lines .at", has_text="epoch 43210").wait_for()


def test_the_ledger_leads_to_its_files(watched: Any) -> None:
    page = watched.open(f"/runs/{watched.site.ids['done']}")
    page.locator("#signals dd a").first.click()
    page.get_by_role("heading", name="events.jsonl").wait_for()
