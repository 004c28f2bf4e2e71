"""Measure the analysis of runs: `experiment analyse` of 10,000 runs, `compare` of two agents over 75 tasks × 3 seeds.

Run `uv run python benchmarks/analysis.py`. The runs are written to a temporary folder: 8 agents, each with its report,
three versions, a rollout of five steps and a log; one in four fails. Times are those of the whole command including
start-up, the best of three (the first fills file caches).
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from _measuring import machine, seconds_of

TASKS = 75
MEDALS = ("gold", "silver", "bronze")


def write_run(folder: Path, task: str, agent: str, seed: int, score: float | None) -> None:
    """Write one run to disk; without a score, as if the agent had crashed."""
    name = f"20261122-120000-{task}-{agent}-{seed:06d}"
    path = folder / name
    (path / "logs").mkdir(parents=True)
    spec = {"id": name, "task": task, "agent": agent, "sandbox": "docker", "seed": seed, "network": "none"}
    spec |= {"options": {}, "limits": {"time_limit": 3600.0, "cpus": 1.0}}
    thresholds = {"gold_threshold": 0.9, "silver_threshold": 0.8, "bronze_threshold": 0.7, "median_threshold": 0.5}
    medal = next((one for one in MEDALS if score is not None and score >= thresholds[f"{one}_threshold"]), None)
    report = {
        "competition_id": task, "score": score, **thresholds, "any_medal": medal is not None,
        **{f"{one}_medal": one == medal for one in MEDALS}, "above_median": (score or 0) > 0.5,
        "submission_exists": score is not None, "valid_submission": score is not None, "is_lower_better": False,
        "task_version": "1", "metric": "accuracy", "percentile": score and 100 * score,
        "created_at": "2026-11-22T12:00:10Z", "submission_path": "output/submission.csv",
    }  # fmt: skip
    ended = {"stage": "running", "status": "finished", "outcome": {"seconds": 600.0, "exit_code": 0}}
    state = {"state": "failed", "cause": "agent_crashed"} if score is None else {"state": "done", "cause": None}
    events = [("stage", ended), ("state", state)]
    lines = [
        json.dumps({"seq": number, "time": "2026-11-22T12:00:10Z", "type": kind, "data": data}, separators=(",", ":"))
        for number, (kind, data) in enumerate(events)
    ]
    versions = [{"seconds": 100.0 * n, "score": (score or 0) * n / 3, "valid": True} for n in (1, 2, 3)]
    steps = [
        {"source": "agent", "tool_calls": [{"arguments": {"code": f"model.fit(x, y, {n})"}}],
         "observation": {"results": [{"content": "Traceback\nKeyError: 'a'" if score is None else "accuracy"}]},
         "extra": {"validation_metric": score, "is_buggy": score is None}}
        for n in range(5)
    ]  # fmt: skip
    files = {
        "run.json": {"spec": spec, "use": {"task_version": "1", "agent_version": "1"}},
        "report.json": report,
        "rollout.json": {"steps": steps},
        **({"scores.json": versions} if score is not None else {}),
    }
    for file, content in files.items():
        (path / file).write_text(json.dumps(content))
    (path / "events.jsonl").write_text("\n".join(lines) + "\n")
    (path / "logs" / "agent.log").write_text("epoch\n" * 50 + ("KeyError: 'a'\n" if score is None else ""))


def best(*arguments: str) -> tuple[float, float]:
    """Return wall and CPU seconds of a command, the best of three."""
    return min(seconds_of([sys.executable, "-m", "mleredux", *arguments, "--json"]) for _ in range(3))


def main() -> None:
    """Print the table."""
    print(f"{machine()}\n\n| command | runs | wall, s | CPU, s |\n| --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as scratch:
        for agents, seeds in ((8, 17), (2, 3)):
            folder, runs = Path(scratch, str(agents)), agents * TASKS * seeds
            for number in range(runs):
                agent, task, seed = number % agents, number // agents % TASKS, number // agents // TASKS
                score = (number * 7919 % 1000 + 30 * agent) / 1250
                write_run(folder, f"task{task:02d}", f"agent{agent}", seed, score if number % 4 else None)
            if agents > 2:
                command, took = "experiment analyse", best("experiment", "analyse", str(folder))
            else:
                command, took = "compare", best("compare", "agent0", "agent1", "--runs-dir", str(folder))
            print(f"| `{command}` | {runs:,} | {took[0]:.2f} | {took[1]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
