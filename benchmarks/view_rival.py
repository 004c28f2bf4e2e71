"""Compare the web pages with Inspect's viewer and MLflow, in the same browser, with equally many runs and bytes.

    python -m venv rival && rival/bin/pip install inspect-ai mlflow
    uv run python benchmarks/view_rival.py --python rival/bin/python [--runs 10000] [--steps 300000] [--log-mb 100]
        [--folder DIR] [--only-make]

A run is a run in MLflow, and a log file with one sample for Inspect, with the same rollout of twelve steps. The first
run is written by the program itself, and the others are copies of its file or its database rows. The long log is an
artifact in MLflow, and the output of a tool for Inspect; the long rollout is the messages of a sample, and MLflow has
no equivalent. Each page is opened three times in a new tab with an empty cache. It counts as shown when a text of it is
in the document, and as painted two frames later; memory is measured after a garbage collection. Data in DIR from an
earlier call is reused. Needs Chromium (`.ci/chromium`).
"""

from __future__ import annotations

import argparse
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from _measuring import machine, table
from mleredux.plugin.artifact import RunStore
from playwright.sync_api import Error, sync_playwright
from view import BYTES, LOG_LINE, PAINTED, make_run, rollout_text

SECONDS = 60
SHOWN = "(text) => document.body && document.body.innerText.includes(text)"
TIMES = 3
INSPECT = """
import sys, pathlib, zipfile
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.model import ChatMessageAssistant, ChatMessageTool, ChatMessageUser
folder, runs, steps, size = pathlib.Path(sys.argv[1]), *map(int, sys.argv[2:])
logs = eval(Task(dataset=[Sample("hi")]), model="mockllm/model", log_dir=str(folder / "first"), display="none")
log = read_eval_log(logs[0].location)
def told(count):
    words = "Step {n}: I try {trees} trees and read the validation score."
    return [ChatMessageAssistant(content=words.format(n=n, trees=100 * n)) for n in range(count)]
def place(name):
    return folder / "logs" / f"2026-11-22T10-00-00+00-00_{name}_{name}.eval"
def write(name, messages):
    log.eval.task, log.eval.run_id, log.eval.eval_id, log.eval.task_id = name, name, name, name
    log.samples[0].messages, log.samples[0].events = messages, []
    write_eval_log(log, str(place(name)))
(folder / "logs").mkdir()
write("task00000", told(12))
with zipfile.ZipFile(place("task00000")) as archive:
    parts = [(part, archive.read(part)) for part in archive.infolist()]
for number in range(1, runs):
    name = f"task{number:05d}"
    with zipfile.ZipFile(place(name), "w") as archive:
        for part, content in parts:
            archive.writestr(part.filename, content.replace(b"task00000", name.encode()), part.compress_type)
write("longrollout", told(steps))
line = "epoch %d loss 0.12345 accuracy 0.98765 lr 0.001 time 12.3 s elapsed\\n"
text = "".join(line % n for n in range(size // 69)) + "the last line"
write("longlog", [ChatMessageUser(content="begin"), ChatMessageTool(content=text)])
"""
MLFLOW = """
import sys, pathlib, sqlite3, uuid
from mlflow.entities import Metric, Param
from mlflow.tracking import MlflowClient
folder, runs, steps, size = pathlib.Path(sys.argv[1]), *map(int, sys.argv[2:])
client = MlflowClient(f"sqlite:///{folder}/mlflow.db")
experiment = client.create_experiment("runs", artifact_location=f"file://{folder}/artifacts")
first = client.create_run(experiment, run_name="task00000").info.run_id
scores = [Metric("score", 0.6 + n / 50, 1 + n, n) for n in range(5)]
client.log_batch(first, scores, [Param("agent", "aide"), Param("seed", "0")])
client.set_terminated(first)
long = client.create_run(experiment, run_name="longlog").info.run_id
line = "epoch %d loss 0.12345 accuracy 0.98765 lr 0.001 time 12.3 s elapsed\\n"
(folder / "agent.log").write_text("".join(line % n for n in range(size // 69)) + "the last line")
client.log_artifact(long, str(folder / "agent.log"))
with sqlite3.connect(folder / "mlflow.db") as database:
    for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
        if "run_uuid" not in columns:
            continue
        rows = database.execute(f"SELECT * FROM {table} WHERE run_uuid = ?", [first]).fetchall()
        ids = (uuid.UUID(int=number).hex for number in range(1, runs))
        copies = (
            [one.replace(first, own).replace("task00000", f"task{number:05d}") if isinstance(one, str) else one
             for one in row]
            for number, own in enumerate(ids, start=1) for row in rows
        )
        database.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(columns))})", copies)
(folder / "ids").write_text(f"{long} {experiment}")
"""


@contextmanager
def served(command: list[Any], url: str | None) -> Iterator[str]:
    """Start a program; yield its URL once it responds, or its first line of output if the URL is None."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as program:
        assert program.stdout is not None
        try:
            yield _answering(url) if url else program.stdout.readline().strip()
        finally:
            program.send_signal(signal.SIGTERM)
            try:
                program.wait(10)
            except subprocess.TimeoutExpired:
                program.kill()


def _answering(url: str) -> str:
    until = time.monotonic() + 5 * SECONDS
    while time.monotonic() < until:
        try:
            urllib.request.urlopen(url, timeout=5)
            return url
        except OSError:
            time.sleep(0.2)
    raise SystemExit(f"{url} does not answer.")


def free_port() -> int:
    """Return a port that is currently free."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


class Measured:
    """Measurements of one viewer: median milliseconds until painted, bytes, and MB of memory, for each page."""

    def __init__(self, browser: Any, once: str | None = None) -> None:
        self.browser, self.context, self.figures = browser, browser.new_context(), dict[str, float | None]()
        self.memory = browser.new_browser_cdp_session()
        page = self.context.new_page()
        self.empty = self._used()
        page.close()
        if once:
            page = self.context.new_page()
            page.goto(once)
            page.close()

    def open(self, name: str, url: str, text: str) -> None:
        """Open a URL in new tabs with an empty cache, and wait for a text."""
        taken = [one for _ in range(TIMES) if (one := self._opened(name, url, text))]
        for key, values in zip(("", " bytes", " scripts", " memory"), zip(*taken, strict=True), strict=False):
            self.figures[name + key] = statistics.median(values)

    def _opened(self, name: str, url: str, text: str) -> tuple[float, ...] | None:
        if self.figures.get(name, 0) is None:
            return None  # it did not respond in time
        page = self.context.new_page()
        tab = page.context.new_cdp_session(page)
        tab.send("Network.clearBrowserCache")
        begun = time.perf_counter()
        try:
            page.goto(url, timeout=SECONDS * 1000, wait_until="commit")
            page.wait_for_function(SHOWN, arg=text, timeout=SECONDS * 1000)
            page.evaluate(PAINTED)
            taken, size = (time.perf_counter() - begun) * 1000, page.evaluate(BYTES)
            tab.send("HeapProfiler.collectGarbage")
            scripts = page.evaluate("performance.memory.usedJSHeapSize") / 2**20
            return taken, size, scripts, self._used() - self.empty
        except Error as error:
            print(f"{name}: {str(error).splitlines()[0]}", file=sys.stderr)
            self.figures[name] = None
            return None
        finally:
            page.close()

    def _used(self) -> float:
        """Return the private memory of the browser's renderers in MB."""
        processes = self.memory.send("SystemInfo.getProcessInfo")["processInfo"]
        total = 0
        for pid in (one["id"] for one in processes if one["type"] == "renderer"):
            with suppress(OSError):  # the renderer has just ended
                rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
                total += sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Private_"))
        return total / 1024


def own(folder: Path, browser: Any, options: argparse.Namespace) -> Measured | None:
    """Measure the pages of this project."""
    runs = folder / "runs"
    if not runs.exists():
        for number in range(options.runs):
            make_run(runs, number, steps=12)
        large = make_run(runs, options.runs + 1, steps=2, status="done", task="wine")
        with (large / "logs/agent.log").open("wb") as file:
            file.writelines(LOG_LINE % number for number in range((options.log_mb << 20) // 69))
            file.write(b"the last line")
        (large / "rollout.json").write_text(rollout_text(options.steps))
        RunStore(runs).rows()  # create the index, which corresponds to MLflow's database
    if options.only_make:
        return None
    (large,) = runs.glob(f"*-{options.runs + 1:06d}")
    command = [Path(sys.executable).with_name("mleredux"), "view", "--no-browser", "--runs-dir", runs]
    with served(command, None) as once:
        measured, base = Measured(browser, once), once.partition("/?")[0]
        measured.open("list", f"{base}/", "digits")
        measured.open("log", f"{base}/runs/{large.name}/log", "the last line")
        measured.open("rollout", f"{base}/runs/{large.name}/steps", "Step 2: I try")
    return measured


def inspect(folder: Path, browser: Any, options: argparse.Namespace) -> Measured | None:
    """Measure Inspect's viewer."""
    _make(folder, INSPECT, options)
    if options.only_make:
        return None
    port = free_port()
    program = options.python.with_name("inspect")
    command = [program, "view", "start", "--log-dir", folder / "logs", "--port", str(port)]
    with served(command, f"http://127.0.0.1:{port}/") as base:
        measured, name = Measured(browser), "2026-11-22T10-00-00%2B00-00_{0}_{0}.eval"
        measured.open("list", base, "task0")
        measured.open("log", f"{base}#/logs/{name.format('longlog')}/samples/sample/1/1/messages", "begin")
        measured.open("rollout", f"{base}#/logs/{name.format('longrollout')}/samples/sample/1/1/messages", "Step 2: I")
    return measured


def mlflow(folder: Path, browser: Any, options: argparse.Namespace) -> Measured | None:
    """Measure MLflow."""
    _make(folder, MLFLOW, options)
    if options.only_make:
        return None
    run, experiment = (folder / "ids").read_text().split()
    port = free_port()
    command = [options.python.with_name("mlflow"), "server", "--backend-store-uri", f"sqlite:///{folder}/mlflow.db"]
    with served([*command, "--port", str(port), "--workers", "1"], f"http://127.0.0.1:{port}/") as base:
        measured = Measured(browser)
        measured.open("list", f"{base}#/experiments/{experiment}/runs", "task0")
        measured.open("log", f"{base}#/experiments/{experiment}/runs/{run}/artifacts/agent.log", "epoch 10")
    return measured


def _make(folder: Path, program: str, options: argparse.Namespace) -> None:
    if not any(folder.iterdir()):
        arguments = [options.python, "-c", program, folder, options.runs, options.steps, options.log_mb << 20]
        subprocess.run(list(map(str, arguments)), check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=Path, required=True, help="Of an environment with inspect-ai and mlflow.")
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--steps", type=int, default=300_000)
    parser.add_argument("--log-mb", type=int, default=100)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--only-make", action="store_true", help="Make the data, and measure nothing.")
    options = parser.parse_args()
    options.python = options.python.absolute()
    folder = (options.folder or Path(tempfile.mkdtemp(prefix="view-"))).absolute()
    figures = {}
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--enable-precise-memory-info"]
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        for name, measure in (("mleredux", own), ("Inspect", inspect), ("MLflow", mlflow)):
            (folder / name).mkdir(parents=True, exist_ok=True)
            if measured := measure(folder / name, browser, options):
                figures[name] = measured.figures
        browser.close()
    if options.only_make:
        return
    rows = [("", *figures, "better of the two / mleredux")]
    opened = {
        "list": f"list of {options.runs:,} runs",
        "log": f"log of {options.log_mb} MB",
        "rollout": f"rollout of {options.steps:,} steps",
    }
    kinds = {
        ", painted (ms)": "",
        ": bytes": " bytes",
        ": scripts' memory (MB)": " scripts",
        ": memory of the tab (MB)": " memory",
    }
    for title, key in ((f"{title}{kind}", name + end) for name, title in opened.items() for kind, end in kinds.items()):
        values = [one.get(key) for one in figures.values()]
        others = [value for value in values[1:] if value is not None]
        ratio = f"{min(others) / values[0]:.1f}" if others and values[0] else "–"
        cells = [f"{value:,.0f}" if value is not None else "–" for value in values]
        rows.append((title, *cells, ratio))
    print(machine())
    print(table(*rows))
    if options.folder is None:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
