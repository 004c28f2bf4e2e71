"""A person takes a task in the browser: begins, downloads, submits, finishes, and sees the grade."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.chromium


def test_a_person_works_on_a_task_in_the_browser(
    browser: Browser, site_of: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLEREDUX_DATA_ROOT", str(tmp_path / "data"))
    site = site_of(tmp_path / "runs")
    page = browser.new_page()
    page.goto(site.once())
    page.goto(f"{site.url}/tasks/wine")
    page.get_by_label("Name").fill("ada")
    page.get_by_label("Feedback").select_option("later")
    page.get_by_role("button", name="Begin").click(timeout=90_000)
    page.get_by_text("left of 120 minutes. It is graded when the teacher releases feedback.").wait_for(timeout=90_000)
    with page.expect_download() as started:
        page.get_by_role("link", name="Download the files").click()
    with zipfile.ZipFile(started.value.path()) as packed:
        assert {"description.md", "data/train.csv"} <= set(packed.namelist())
        sample = packed.read("data/sample_submission.csv")
    for content, said in ((b"id,cultivar_1\n1,2\n", "Not valid: "), (sample, "Valid: ")):
        (tmp_path / "mine.csv").write_bytes(content)
        page.get_by_label("Submission", exact=True).set_input_files(tmp_path / "mine.csv")
        page.get_by_role("button", name="Submit").click()
        page.get_by_role("status").filter(has_text=said).wait_for()
    page.get_by_role("button", name="Finish").click()
    page.get_by_text("The work has ended. It is graded when the teacher releases feedback.").wait_for(timeout=60_000)
    page.goto(f"{site.url}/people")
    assert re.search(r"ada.*wine.*grading", page.inner_text("#rows"), re.DOTALL)
    page.close()
    site.close()
