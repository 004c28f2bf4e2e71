"""The steps of a rollout in a browser: pages, filters, tool calls, and those of a run that is still active."""

from __future__ import annotations

import re
from typing import Any

import pytest

pytestmark = pytest.mark.chromium


def test_steps_are_filtered_and_searched_in_pages(watched: Any) -> None:
    page = watched.open(f"/runs/{watched.site.ids['long']}")
    page.locator("#run-tools", has_text="2,999 calls of 3 tools.").wait_for()
    watched.open(f"/runs/{watched.site.ids['long']}/steps")
    assert page.locator("details.step").count() == 50
    assert page.locator("#tools", has_text="2,999 calls of 3 tools.").locator(".name.tool").count() == 3
    page.keyboard.press("n")
    page.wait_for_url(re.compile("page=2"))
    page.locator("details.step .n", has_text="51").first.wait_for()
    watched.open(f"/runs/{watched.site.ids['long']}/steps")
    tree = page.get_by_role("group", name="Search tree of 400 solutions")
    assert tree.locator("line").count() == tree.locator("a").count() == 400
    assert tree.get_by_label("Step 14, with an error").count() == 1
    tree.get_by_label("Step 60, metric").click()
    page.locator("details.step .n", has_text="60").first.wait_for()
    watched.open(f"/runs/{watched.site.ids['long']}/steps")
    page.get_by_label("with errors").check()
    page.locator("#steps", has_text="428 of 3,000 steps").wait_for()
    page.locator("select[name=tool]").select_option("bash")
    page.locator("#step-search").fill("I TRY 2100 trees")
    page.locator("#steps", has_text="1 of 3,000 steps").wait_for()
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    assert "Traceback" in page.locator("details.step[open] pre").last.inner_text()


def test_steps_appear_while_the_run_goes_on(watched: Any, made_runs: Any) -> None:
    page = watched.open(f"/runs/{watched.site.ids['live']}")
    page.locator("#run-tools #tools", has_text="11 calls of 3 tools.").wait_for()
    own = watched.site.runs / watched.site.ids["live"] / "output" / "rollout" / "trajectory.json"
    watched.open(f"/runs/{watched.site.ids['live']}/steps")
    assert page.locator("details.step").count() == 12
    own.write_text(made_runs.rollout_text(14))
    page.wait_for_timeout(2_100)
    page.reload()
    page.locator("details.step .n", has_text="14").wait_for()
