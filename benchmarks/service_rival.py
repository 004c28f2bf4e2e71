"""Compare our server with MLflow's on equally many runs: `uv run python benchmarks/service_rival.py PYTHON [RUNS]`.

PYTHON belongs to an environment with mlflow (`uv venv rival && uv pip install --python rival/bin/python mlflow`). Both
servers get the same requests, one after the other: MLflow's with one worker process and SQLite, ours as started by
`mleredux serve`.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import psutil
from _measuring import machine, table
from mleredux_support.ports import free_port
from service import stored

FILL = """
import sys
from mlflow.entities import Metric, Param, RunTag
from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
store = SqlAlchemyStore(sys.argv[1], sys.argv[2])
experiment = store.create_experiment("runs")
for number in range(int(sys.argv[3])):
    tags = [RunTag("of", "benchmark"), RunTag("agent", "noop"), RunTag("task", "toy")]
    run = store.create_run(experiment, "me", 1_760_000_000_000 + number, tags, f"run-{number}")
    store.log_batch(run.info.run_id, [Metric("score", 0.5, 1, 0)], [Param("seed", str(number))], [])
    store.update_run_info(run.info.run_id, 3, 1_760_000_000_000 + number + 1000, None)
print(experiment)
"""


def memory_mb(process: psutil.Process) -> float:
    """Return the memory of a process and its children in MB."""
    return sum(one.memory_info().rss for one in [process, *process.children(recursive=True)]) / 2**20


def main() -> None:
    """Measure and print."""
    python, count = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 2_000
    with tempfile.TemporaryDirectory() as folder:
        ours = dict(stored(Path(folder), count))
    theirs = dict(rival(python, count))
    assert theirs.keys() <= ours.keys()
    rows = [(name, ours[name], value, f"{float(value) / float(ours[name]):.1f}×") for name, value in theirs.items()]
    print(machine() + "\n\n" + table((f"{count} runs", "mleredux", "MLflow", "ratio"), *rows))


def rival(python: Path, count: int) -> list[list[str]]:
    """Measure MLflow's server."""
    with tempfile.TemporaryDirectory() as folder:
        store, url = f"sqlite:///{folder}/mlflow.db", f"http://127.0.0.1:{free_port()}"
        began = time.perf_counter()
        filled = [str(python), "-c", FILL, store, f"{folder}/artifacts", str(count)]
        experiment = subprocess.run(filled, check=True, capture_output=True, text=True).stdout.split()[-1]
        print(f"filled in {time.perf_counter() - began:.0f} s", file=sys.stderr)
        command = [str(python), "-m", "mlflow", "server", "--backend-store-uri", store, "--workers", "1"]
        command += ["--port", url.rpartition(":")[2], "--artifacts-destination", f"{folder}/artifacts"]
        with (Path(folder) / "log").open("w") as log:
            began = time.perf_counter()
            server = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "MLFLOW_TELEMETRY": "false"})
        try:
            return measured(url, experiment, count, server, began)
        finally:
            for child in psutil.Process(server.pid).children(recursive=True):
                child.terminate()
            server.terminate()
            server.wait(30)


def measured(url: str, experiment: str, count: int, server: subprocess.Popen[bytes], began: float) -> list[list[str]]:
    """Return start time, memory, and times of list requests."""
    path, process = "/api/2.0/mlflow/runs/search", psutil.Process(server.pid)
    with httpx.Client(base_url=url, timeout=120) as http:
        while True:
            try:
                http.get("/health").raise_for_status()
                break
            except httpx.HTTPError:
                assert server.poll() is None, "it did not start"
                time.sleep(0.1)
        took = time.perf_counter() - began
        rows = [["later starts, s", f"{took:.1f}"], ["memory then, MB", f"{memory_mb(process):.0f}"]]
        for name, search in {
            "first page of 50, ms": {"max_results": 50},
            "page of 500, ms": {"max_results": 500},
            "filtered by status and label, ms": {
                "max_results": 50,
                "filter": "attributes.status = 'FINISHED' and tags.of = 'benchmark'",
            },
            "filtered, none fits, ms": {"max_results": 50, "filter": "attributes.status = 'FAILED'"},
            "sorted by score, ms": {"max_results": 50, "order_by": ["metrics.score DESC"]},
        }.items():
            taken = []
            for _ in range(20):
                before = time.perf_counter()
                answer = http.post(path, json={"experiment_ids": [experiment], **search})
                taken.append(time.perf_counter() - before)
                assert answer.status_code == 200, answer.text
            rows.append([f"{name} (median of 20)", f"{statistics.median(taken) * 1000:.0f}"])
        before, seen, token = time.perf_counter(), 0, ""
        while True:
            body = {"experiment_ids": [experiment], "max_results": 500, **({"page_token": token} if token else {})}
            page = http.post(path, json=body).json()
            seen += len(page.get("runs", []))
            if not (token := page.get("next_page_token", "")):
                break
        assert seen == count, f"{seen} of {count} runs were listed"
        rows.append([f"all {count}, in pages of 500, s", f"{time.perf_counter() - before:.2f}"])
        rows.append(["memory after all that, MB", f"{memory_mb(process):.0f}"])
    return rows


if __name__ == "__main__":
    main()
