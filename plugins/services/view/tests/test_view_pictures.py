"""Pages look as they did when a person approved them: at three widths, light and dark.

`MLEREDUX_APPROVE=1 pytest …/test_view_pictures.py` writes the pictures again; inspect them before they are committed.
"""

from __future__ import annotations

import io
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

pytestmark = pytest.mark.chromium
APPROVED = Path(__file__).parent / "approved"
WIDTHS = {400: 860, 1280: 900, 2560: 1300}
PAGES = {"runs": "/", "run": "/runs/{done}", "steps": "/runs/{long}/steps", "techniques": "/techniques"}
QUIET = """() => {
    document.querySelectorAll(".where, #live").forEach((one) => { one.textContent = ""; });
    document.querySelectorAll("[data-since]").forEach((one) => { one.textContent = "…"; });
    return new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)));
}"""
SHOWN = 400
"""Width in pixels of the pictures that are kept."""
BLOCKS = 16
"""Fonts are drawn a little differently elsewhere: means of so many blocks side by side are compared."""
TOLERANCE = 16.0
"""Of 255: the largest difference of a block."""


def blocks(picture: Image.Image) -> Any:
    """Means of colors, of shape (blocks, blocks, 3)."""
    small = picture.convert("RGB").resize((BLOCKS, BLOCKS), Image.Resampling.BOX)
    return np.asarray(small, dtype=float)


def taken(page: Any) -> Image.Image:
    """What is on the screen."""
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_the_page_looks_as_approved(watched: Any, name: str, scheme: str) -> None:
    watched.page.emulate_media(color_scheme=scheme)
    for width, height in WIDTHS.items():
        watched.page.set_viewport_size({"width": width, "height": height})
        page = watched.open(PAGES[name].format(**watched.site.ids))
        page.evaluate(QUIET)
        path = APPROVED / f"{name}-{width}-{scheme}.png"
        if os.environ.get("MLEREDUX_APPROVE"):
            shot = taken(page)
            kept = shot.resize((SHOWN, round(SHOWN * height / width)), Image.Resampling.LANCZOS)
            path.parent.mkdir(exist_ok=True)
            kept.quantize(64).save(path, optimize=True)
        approved, end = blocks(Image.open(path)), time.monotonic() + 20
        while (difference := np.abs(approved - blocks(taken(page))).max()) >= TOLERANCE:  # it may still be drawn
            assert time.monotonic() < end, f"{path.name} differs by {difference:.1f} of 255 in a block"
            time.sleep(0.5)
