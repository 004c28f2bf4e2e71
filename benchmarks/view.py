"""Measure how fast web pages open: 10,000 runs, a log of 100 MB, a rollout of 300,000 steps, in Debian's Chromium.

    uv run python benchmarks/view.py [--runs 10000] [--folder DIR]

A folder from an earlier call is reused. Needs Chromium (`.ci/chromium`).
"""

from __future__ import annotations

import argparse
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from _measuring import machine, table
from mleredux.plugin.artifact import RunStore
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "plugins/services/view/tests"))
from made_runs import make_run, rollout_text  # noqa: E402

LOG_LINE = b"epoch %d loss 0.12345 accuracy 0.98765 lr 0.001 time 12.3 s elapsed\n"
PAINTED = "() => new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))"
BYTES = "performance.getEntries().reduce((sum, one) => sum + (one.transferSize || 0), 0)"
FILTER = """async (value) => {
    const begun = performance.now(), done = new Promise((go) => document.addEventListener('htmx:after:swap', go, {once: true}));
    const box = document.querySelector('#search'); box.value = value;
    box.dispatchEvent(new Event('input', {bubbles: true}));
    await done;
    return performance.now() - begun;
}"""  # noqa: E501


def make(folder: Path, count: int) -> Path:
    """Create the runs; return the large run."""
    for number in range(count):
        make_run(folder, number, steps=2)
    large = make_run(folder, count + 1, steps=2, status="done", task="wine")
    with (large / "logs/agent.log").open("wb") as file:
        file.writelines(LOG_LINE % number for number in range(1_450_000))
    (large / "rollout.json").write_text(rollout_text(300_000))
    return large


def measure(page: Any, url: str) -> tuple[float, float]:
    """Return milliseconds until a page is loaded and painted, and the bytes transferred, with an empty cache."""
    page.context.new_cdp_session(page).send("Network.clearBrowserCache")
    begun = time.perf_counter()
    page.goto(url)
    page.evaluate(PAINTED)
    return (time.perf_counter() - begun) * 1000, page.evaluate(BYTES)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="view-"))
    written = sorted(folder.glob(f"*-{options.runs + 1:06d}"))
    large = written[0] if written else make(folder, options.runs)
    RunStore(folder).rows()  # create the index, which otherwise a thread would create during the measurement
    command = [Path(sys.executable).with_name("mleredux"), "view", "--no-browser", "--runs-dir", folder]
    begun = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server, sync_playwright() as playwright:
        assert server.stdout is not None
        once = server.stdout.readline().strip()
        started = time.perf_counter() - begun
        base = once.partition("/?")[0]
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(once)
        rows = [("page", "painted after (ms)", "bytes")]
        for name, path in (
            (f"{options.runs:,} runs", "/"),
            ("log of 100 MB, first time", f"/runs/{large.name}/log"),
            ("log of 100 MB, again", f"/runs/{large.name}/log"),
            ("rollout of 300,000 steps, first time", f"/runs/{large.name}/steps"),
            ("rollout of 300,000 steps, page 2", f"/runs/{large.name}/steps?page=2"),
            ("one run", f"/runs/{large.name}"),
        ):
            paint, size = measure(page, base + path)
            rows.append((name, f"{paint:.0f}", f"{size:,.0f}"))
        page.goto(base + "/")
        filtered = [page.evaluate(FILTER, word) for word in ("wine", "wine solver", "aide", "digits", "baseline")]
        heap = page.evaluate("performance.memory.usedJSHeapSize") / 2**20
        browser.close()
        server.send_signal(signal.SIGTERM)
    print(machine())
    print(table(*rows))
    print(f"A filter: {statistics.median(filtered):.0f} ms.")
    print(f"The program answers after {started:.1f} s; script memory of the tab: {heap:.1f} MB.")
    if options.folder is None:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
