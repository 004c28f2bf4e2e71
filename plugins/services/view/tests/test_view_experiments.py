"""Pages of experiments and comparisons, in the browser and exported."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

AXE = Path(__file__).with_name("axe.min.js").read_text()


@pytest.fixture(scope="module")
def pages(filled: Any, browser: Browser) -> Any:
    """A signed-in context."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.new_page().goto(filled.once())
    yield context
    context.close()


def opened(pages: Any, address: str) -> Any:
    """A page without errors, without a violation of accessibility, as wide as the window."""
    page, said = pages.new_page(), list[str]()
    page.on("console", lambda one: one.type == "error" and said.append(one.text))
    assert page.goto(address).status == 200, page.inner_text("main")
    page.evaluate(AXE)
    assert [one["id"] for one in page.evaluate("axe.run().then(found => found.violations)")] == [] and said == []
    page.set_viewport_size({"width": 360, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.set_viewport_size({"width": 1280, "height": 900})
    return page


def test_an_experiment_as_it_fills(filled: Any, pages: Any) -> None:
    page = opened(pages, f"{filled.url}/experiments")
    page.click("text=trees")
    page.get_by_text("The experiment has not ended.").wait_for(timeout=90_000)
    text = page.inner_text("main")
    assert "10 of 12 runs ended" in text and "missing" in text
    assert re.search(r"cannot tell with so few tasks: a decision needs \d tasks or more", text)
    opened(pages, page.url)
    page.click("text=Compare its arms")
    assert "2 tasks: 2 arms" in page.inner_text("h1")


def test_a_comparison_begins_with_a_table_of_arms_and_takes_another_measure(filled: Any, pages: Any) -> None:
    page = opened(pages, f"{filled.url}/compare?experiment=trees")
    first = page.locator("main section").first
    assert first.locator("thead").inner_text().strip().split("\t") == ["Arm", "Runs", "Percentile", "Medal, %"]
    assert first.locator("tbody tr").count() == 2
    page.select_option("select[name=measure]", "valid")
    page.click("main form button")
    assert "measure=valid" in page.url and "experiment=trees" in page.url
    assert page.locator("select[name=measure]").input_value() == "valid"
    assert page.locator("h1").inner_text() == "2 tasks: 2 arms"


@pytest.mark.parametrize("width", [320, 390])
def test_tables_of_a_comparison_need_no_sideways_scrolling_on_a_phone(filled: Any, pages: Any, width: int) -> None:
    page = opened(pages, f"{filled.url}/compare?experiment=trees")
    page.set_viewport_size({"width": width, "height": 900})
    wider = "(found) => found.map((one) => one.scrollWidth - one.clientWidth)"
    extra = page.locator("main .scroll").evaluate_all(wider)
    assert len(extra) == 3 and set(extra) == {0}
    first = page.locator("main section").first.locator("tbody tr").first
    assert first.locator("[data-label='Medal, %']").is_visible()


def test_a_comparison_leads_to_both_runs_of_a_task(filled: Any, pages: Any) -> None:
    page = opened(pages, f"{filled.url}/compare?experiment=trees")
    assert "On which tasks is many better than few?" not in page.inner_text("main")
    page.click("text=Show charts and all tables")
    page.get_by_text("On which tasks is many better than few?").wait_for(timeout=90_000)
    _see_all_plots(page)
    page.click("text=with many >> nth=0")
    text = opened(pages, page.url).inner_text("main")
    assert "dummy" in text and "baseline" in text and "Difference" not in text


def _see_all_plots(page: Any) -> None:
    """Scroll to each plot, since it is drawn when it is visible."""
    plots = page.locator("main img.drawn")
    assert plots.count() > 2
    for plot in plots.all():
        plot.scroll_into_view_if_needed()
        page.wait_for_function("plot => plot.complete && plot.naturalWidth > 99", arg=plot.element_handle())


def test_plots_are_files_that_run_nothing_and_unknown_ones_are_not_found(filled: Any, pages: Any) -> None:
    for page in (f"{filled.url}/compare?experiment=trees", f"{filled.url}/experiments/trees?"):
        text = pages.request.get(f"{page}&part=analysis", timeout=90_000).text()
        sources = re.findall(r'<img class="drawn" loading="lazy" src="([^"]+)"', text)
        assert len(sources) > 2
        for source in sources:
            plot = pages.request.get(urljoin(filled.url, html.unescape(source)), timeout=90_000)
            assert plot.status == 200 and plot.headers["content-type"] == "image/svg+xml" and "<svg" in plot.text()
            assert plot.headers["content-security-policy"] == "sandbox; default-src 'none'"
        missing = pages.request.get(f"{page}&plot=../none", timeout=90_000)
        assert missing.status == 404 and "no plot" in missing.text()


def test_scores_over_time_lie_over_each_other_with_the_mean_of_each_arm(filled: Any, pages: Any) -> None:
    page = opened(pages, f"{filled.url}/compare?experiment=trees")
    boxes = page.locator("main .chart")
    assert boxes.count() == 2 and page.locator("main .chart canvas").count() == 2
    chart = json.loads(boxes.first.get_attribute("data-chart"))
    means = [one["label"] for one in chart["series"] if one.get("class") != "single"]
    assert [label.partition(",")[0] for label in means] == ["few", "many"]
    assert [one for one in boxes.first.locator(".u-series:visible").all_inner_texts() if "mean of" in one]
    ends = {}
    for row in page.locator("h2:text-is('Runs by task and seed') ~ div tbody tr").all():
        task, _, few, many, *_ = row.locator("th, td").all_inner_texts()
        for arm, text in (("few", few), ("many", many)):
            if re.match(r"\d\.\d", text):
                ends.setdefault((task, arm), []).append(float(text.split()[0]))
    for number, task in enumerate(("digits", "wine")):
        chart = json.loads(boxes.nth(number).get_attribute("data-chart"))
        for one, line in zip(chart["series"], chart["data"][1:], strict=True):
            if (arm := one["label"].partition(",")[0]) and "mean of" in one["label"]:
                own = ends[task, arm]
                assert line[-1] == pytest.approx(sum(own) / len(own), abs=1e-4)


def test_runs_that_are_selected_are_compared(filled: Any, pages: Any) -> None:
    page = pages.new_page()
    page.goto(filled.url)
    page.check("#all")
    page.click("button:text-is('Compare')")
    assert page.inner_text("h1").endswith(": 2 arms")


def test_the_export_has_them(filled: Any, tmp_path: Path) -> None:
    from mleredux.plugin.artifact import RunStore
    from mleredux_view.export import export
    from mleredux_view.local import LocalSource

    export(LocalSource(RunStore(filled.runs)), tmp_path / "pages")
    texts = [path.read_text() for path in (tmp_path / "pages").rglob("*.html")]
    assert sum("Agents and settings that differ" in text for text in texts) == 5
    assert any("10 of 12 runs ended" in text for text in texts)
