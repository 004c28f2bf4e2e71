"""Pages look as they did when a person approved them: at three widths, light and dark.

`MLEREDUX_APPROVE=1 pytest …/test_view_pictures.py` writes the pictures again; inspect them before they are committed.
"""

from __future__ import annotations

import base64
import html
import io
import itertools
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mleredux_support.server_local import LocalServer
from PIL import Image

pytestmark = pytest.mark.chromium
APPROVED = Path(__file__).parent / "approved"
WIDTHS = {400: 860, 1280: 900, 2560: 1300}
PAGES = {
    "runs": "/", "failures": "/failures", "launch": "/new?task=digits", "tasks": "/tasks", "task": "/tasks/digits",
    "technique": "/tasks/leakage+planted-7@wine", "techniques": "/techniques", "people": "/people",
    "person": "/people/{person}", "run": "/runs/{done}", "live": "/runs/{live}", "steps": "/runs/{long}/steps",
    "versions": "/runs/{done}/versions", "version": "/runs/{done}/versions/2", "log": "/runs/{long}/log?line=30000",
    "files": "/runs/{hostile}/files?path=output/table.csv", "missing": "/nothing",
}  # fmt: skip
MINOR = {
    "missing", "version", "versions", "files", "log", "people", "person", "technique", "techniques", "failures", "live",
}  # fmt: skip
"""Pages of the same parts as others: compared light at the smallest width and dark at the next."""
OF_EXPERIMENT = {
    "experiments": "/experiments", "experiment": "/experiments/trees", "compare": "/compare?experiment=trees",
    "pair": "/pairs/{first}/{second}",
}  # fmt: skip
QUIET = """() => {
    document.querySelectorAll(".where, #live").forEach((one) => { one.textContent = ""; });
    const changing = document.querySelectorAll("[aria-labelledby=machine-title] li, [data-since]");
    changing.forEach((one) => { one.textContent = "…"; delete one.dataset.since; });
    const lasting = [...document.querySelectorAll("main *")].filter((one) => !one.childElementCount && /^\\d+ h \\d+ min$|\\+planted\\d+\\.|^Since \\d{4}-/.test(one.textContent.trim()));
    lasting.forEach((one) => { one.textContent = "…"; });
    return new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)));
}"""  # noqa: E501
COLORS, SHOWN = 64, 400
"""Of the pictures that are kept: number of colors, and width in pixels."""
BLOCKS = 16
"""Fonts are drawn a little differently elsewhere: means of so many blocks side by side are compared."""
README = Path(__file__).parents[4] / "docs" / "_static"
BESIDE = """<style>
body {{ background: light-dark(#fff, #0d1117); color: light-dark(#1f2328, #e6edf3); color-scheme: light dark; }}
body {{ margin: 0; }}
main {{ align-items: center; display: flex; gap: 24px; height: 760px; padding: 0 24px; }}
pre {{ font: 13px/1.35 "DejaVu Sans Mono", monospace; }}
img {{ border: 1px solid #8884; border-radius: 8px; width: 940px; }}
</style>
<main><pre>$ mleredux run digits --agent baseline

{output}</pre><img src="data:image/png;base64,{picture}"></main>"""
TOLERANCE = 16.0
"""Of 255: the largest difference of a block."""


@pytest.fixture(autouse=True, scope="module")
def _nothing_prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("MLEREDUX_DATA_ROOT", str(tmp_path_factory.mktemp("data")))
        yield


def blocks(picture: Image.Image) -> Any:
    """Means of colors, of shape (blocks, blocks, 3)."""
    small = picture.convert("RGB").resize((BLOCKS, BLOCKS), Image.Resampling.BOX)
    return np.asarray(small, dtype=float)


def taken(page: Any) -> Image.Image:
    """What is on the screen."""
    return Image.open(io.BytesIO(page.screenshot(type="jpeg", quality=85))).convert("RGB")


def looks_as_approved(page: Any, name: str) -> None:
    """Compare what is on the screen with the approved pictures, or write these."""
    page.locator("[aria-busy=true]").wait_for(state="detached", timeout=90_000)
    minor = [("light", 400), ("dark", 1280)]
    for scheme, width in minor if name in MINOR else itertools.product(("light", "dark"), WIDTHS):
        height = WIDTHS[width]
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate(QUIET)
        path = APPROVED / f"{name}-{width}-{scheme}.png"
        if os.environ.get("MLEREDUX_APPROVE"):
            page.wait_for_timeout(500)
            kept = taken(page).resize((SHOWN, round(SHOWN * height / width)), Image.Resampling.LANCZOS)
            path.parent.mkdir(exist_ok=True)
            kept.quantize(COLORS).save(path, optimize=True)
        approved, end = blocks(Image.open(path)), time.monotonic() + 60
        while (difference := np.abs(approved - blocks(taken(page))).max()) >= TOLERANCE:  # it may still be drawn
            assert time.monotonic() < end, f"{path.name} differs by {difference:.1f} of 255 in a block"
            time.sleep(0.5)
            page.evaluate(QUIET)  # the page may have been updated
    page.emulate_media(color_scheme="light")


@pytest.mark.parametrize("name", PAGES)
def test_the_page_looks_as_approved(watched: Any, name: str) -> None:
    looks_as_approved(watched.open(PAGES[name].format(**watched.site.ids)), name)
    if name == "missing":
        assert "404" in watched.problems.pop()


def test_pages_of_an_experiment_look_as_approved(filled: Any, browser: Any) -> None:
    page = browser.new_page()
    page.goto(filled.once())
    for name, path in OF_EXPERIMENT.items():
        page.goto(filled.url + path.format(**filled.ids))
        looks_as_approved(page, name)
    page.close()


def test_pages_of_a_server_look_as_approved(browser: Any, tmp_path: Path) -> None:
    with LocalServer(tmp_path / "runs").running() as server:
        page = browser.new_page()
        page.goto(f"{server.url}/ui/")
        looks_as_approved(page, "sign-in")
        page.get_by_label("Token").fill(server.token)
        page.get_by_role("button", name="Sign in").click()
        page.locator(".run-head, main").first.wait_for()
        page.goto(f"{server.url}/ui/server")
        looks_as_approved(page, "server")
        page.close()


@pytest.mark.slow
def test_the_picture_of_the_readme(site_of: Any, browser: Any, tmp_path: Path) -> None:
    """The first run in a terminal, beside its page."""
    runs = tmp_path / "runs"
    command = ("run", "digits", "--agent", "baseline", "--runs-dir", str(runs), "--data-dir", str(tmp_path / "data"))
    options = {"cwd": tmp_path, "env": os.environ | {"COLUMNS": "74"}, "capture_output": True, "text": True}
    done = subprocess.run([sys.executable, "-m", "mleredux", *command], check=True, **options)  # type: ignore[call-overload]
    lines = done.stdout.replace(f"{tmp_path}/", "").splitlines()
    table = "\n".join(itertools.dropwhile(lambda line: "baseline on digits" not in line, lines))
    assert "gold" in table
    [run] = runs.glob("*-baseline-*")
    site = site_of(runs)
    page = browser.new_page(viewport={"width": 1000, "height": 780})
    page.goto(site.once())
    page.goto(f"{site.url}/runs/{run.name}")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.evaluate(QUIET)
        picture = base64.b64encode(page.screenshot()).decode()
        beside = browser.new_page(viewport={"width": 1600, "height": 760}, color_scheme=scheme)
        beside.set_content(BESIDE.format(output=html.escape(table), picture=picture))
        path = README / f"first-run-{scheme}.png"
        if os.environ.get("MLEREDUX_APPROVE"):
            taken(beside).quantize(4 * COLORS - 1).save(path, optimize=True)
        difference = np.abs(blocks(Image.open(path)) - blocks(taken(beside))).max()
        assert difference < TOLERANCE, f"{path.name} differs by {difference:.1f} of 255 in a block"
        beside.close()
    page.close()
    site.close()
