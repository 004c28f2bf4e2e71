"""Runs on disk as mleredux writes them, made quickly and in any number: no agent is executed."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

START = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
TASKS = ("digits", "wine", "breast-cancer", "diabetes", "spaceship-titanic", "leakage+planted-7@wine")
AGENTS = ("baseline", "aide", "repo:https://github.com/someone/solver@" + "a1b2c3d4" * 5, "openhands")
NATIVE = ("KeyError: 'target'", "ValueError: could not convert string to float: 'abc'", "MemoryError")


def make_run(runs: Path, number: int, **changes: Any) -> Path:
    """Write a run that has ended, a different one for each number.

    Args:
        changes: `task`, `agent`, `status`, `message`, `log`, `code` and others take the place of what is made up.
    """
    rng = random.Random(number)
    status = changes.get("status") or rng.choices(["done", "failed", "timed_out", "running"], [80, 12, 5, 3])[0]
    task, agent = changes.get("task") or TASKS[number % 6], changes.get("agent") or AGENTS[number // 6 % 4]
    at = START - timedelta(minutes=7 * number)
    short = "".join(char if char.isalnum() or char in ".-" else "-" for char in f"{task}-{agent.partition(':')[0]}")
    path = runs / f"{at:%Y%m%d-%H%M%S}-{short[:60]}-{number:06d}"
    for folder in ("output/code", "submissions", "logs"):
        (path / folder).mkdir(parents=True)
    spec = {
        "id": path.name, "task": task, "agent": agent, "sandbox": "docker", "seed": number % 5, "created_at": _at(at),
        "limits": {"time_limit": 3600}, "data_dir": "data", "experiment": changes.get("experiment"),
        "arm": changes.get("arm"),
    }  # fmt: skip
    _write(path / "run.json", {"spec": spec, "use": {"task_version": "1", "agent_version": "4", "python": "3.11.7"}})
    seconds, error = rng.uniform(60, 3500), rng.choice(NATIVE)
    scores = [round(min(0.999, 0.62 + 0.05 * step + rng.uniform(0, 0.04)), 5) for step in range(rng.randint(2, 7))]
    graded = status in ("done", "timed_out")
    _write_events(path, at, seconds, status, scores, changes.get("message"), changes.get("paused", 0.0))
    log = changes.get("log", b"reading 1,437 rows\nfold 1/5\nfold 2/5\nvalidation accuracy 0.9722\n")
    if status == "failed":
        log += b'Traceback (most recent call last):\n  File "/output/code/train.py", line 7, in <module>\n    fit()\n'
        log += error.encode() + b"\n"
    (path / "logs/agent.log").write_bytes(log)
    for index, _ in enumerate(scores, start=1):
        code = path / "submissions" / f"{index:04d}-code"
        code.mkdir()
        text = (
            changes.get("code") or "import pandas as pd\n\nmodel = Forest(trees={n})\nmodel.fit(X, y)\nprint('{n}')\n"
        )
        (code / "train.py").write_text(text.replace("{n}", str(100 * index)))
        (path / "submissions" / f"{index:04d}.csv").write_text("id,label\n1,7\n2,3\n")
    (path / "output/code/train.py").write_text("print('training')\n")
    if graded:
        _write_report(path, task, at, seconds, scores, rng)
    kept = [{"time": _at(at + timedelta(seconds=60 * n)), "seconds": 60 * n} for n, _ in enumerate(scores)]
    text = rollout_text(changes.get("steps", 12), agent, error, at, changes.get("said") or "", kept)
    _write_rollout(path, text, status == "running")
    return path


def rollout_text(
    steps: int, agent: str = "aide", error: str = NATIVE[0], at: datetime = START, said: str = "",
    kept: Sequence[dict[str, Any]] = (),
) -> str:  # fmt: skip
    """A rollout of so many steps, compact, as mleredux writes large ones."""
    listed = []
    for number in range(1, steps + 1):
        step: dict[str, Any] = {"step_id": number, "timestamp": _at(at + timedelta(seconds=9 * number))}
        if number == 1:
            step |= {"source": "user", "message": "Solve the task. The data is in /task/data."}
        else:
            tool = ("bash", "python", "edit")[number % 3]
            bad = number % 7 == 0
            step |= {
                "source": "agent",
                "model_name": "some-model",
                "message": said or f"Step {number}: I try {100 * number} trees and read the validation score.",
                "tool_calls": [
                    {"tool_call_id": f"c{number}", "function_name": tool, "arguments": {"command": f"run {number}"}}
                ],
                "observation": {
                    "results": [
                        {"source_call_id": f"c{number}",
                         "content": f"Traceback (most recent call last):\n{error}" if bad else f"accuracy 0.{number}"}
                    ]
                },
                "metrics": {"prompt_tokens": 1500, "completion_tokens": 210, "cost_usd": 0.0123},
                "extra": {"validation_metric": 0.7 + number % 25 / 100, "metric_name": "accuracy", "is_buggy": bad,
                          "node_id": f"n{number}", "parent_id": f"n{number // 2}"},
            }  # fmt: skip
        listed.append(step)
    document = {
        "schema_version": "ATIF-v1.6",
        "agent": {"name": agent[:60], "version": "4"},
        "steps": listed,
        "extra": {"mleredux": {"submissions": list(kept)}},
    }
    return json.dumps(document, separators=(",", ":"))


def _write_events(
    path: Path, at: datetime, seconds: float, status: str, scores: list[float], message: str | None, paused: float
) -> None:
    outcome = {"exit_code": 1 if status == "failed" else 0, "seconds": seconds, "max_memory_mb": 900, "cpu_seconds": 99}
    outcome["paused_seconds"] = paused
    if status in ("failed", "timed_out"):
        outcome |= {"cause": "agent_crashed" if status == "failed" else "agent_timed_out"}
        outcome |= {"message": message or "The agent's command ended with exit code 1."}
    timed: list[tuple[float, str, dict[str, Any]]] = [
        (0, "state", {"state": "queued"}),
        (1, "state", {"state": "preparing"}),
        (2, "state", {"state": "building"}),
        (5, "state", {"state": "running"}),
        (5, "agent", {"status": "started", "sandbox": "docker", "started_at": at.timestamp() + 5}),
    ]
    for index, _ in enumerate(scores, start=1):
        kept = {"number": index, "path": f"submissions/{index:04d}.csv", "size": 17}
        timed.append((5 + seconds * index / (len(scores) + 1), "submission", kept))
    if status != "running":
        ended = "finished" if status == "done" else "failed"
        timed += [
            (5 + seconds, "stage", {"stage": "running", "status": ended, "outcome": outcome}),
            (5 + seconds, "state", {"state": "grading"}),
            (6 + seconds, "state", {"state": "producing"}),
            (7 + seconds, "state", {"state": status, "cause": outcome.get("cause"), "message": outcome.get("message")}),
        ]
    lines = [
        {"seq": seq, "time": _at(at + timedelta(seconds=after)), "type": kind, "data": data}
        for seq, (after, kind, data) in enumerate(timed)
    ]
    (path / "events.jsonl").write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))


def _write_report(path: Path, task: str, at: datetime, seconds: float, scores: list[float], rng: random.Random) -> None:
    best = scores[-1]
    medal = next((name for name, least in (("gold", 0.95), ("silver", 0.9), ("bronze", 0.86)) if best >= least), None)
    medals = {f"{name}_medal": name == medal for name in ("gold", "silver", "bronze")}
    used = {"calls": 11, "prompt_tokens": 16500, "completion_tokens": 2310, "cost_usd": round(rng.uniform(0.01, 4), 4)}
    _write(
        path / "report.json",
        {
            "competition_id": task, "score": best, "gold_threshold": 0.95, "silver_threshold": 0.9,
            "bronze_threshold": 0.86, "median_threshold": 0.8, "any_medal": medal is not None, **medals,
            "above_median": best > 0.8, "submission_exists": True, "valid_submission": True, "is_lower_better": False,
            "created_at": _at(at), "submission_path": f"submissions/{len(scores):04d}.csv", "task_version": "1",
            "metric": "accuracy", "percentile": round(100 * best - 5, 1), "teams": 2288,
            "ledger": {"validations": 2, "network": "gateway", "llm_calls": 11, "llm": used},
            "details": {"facts": {"score": 0.5, "parts": [
                {"name": name, "score": float(rng.random() < share), "weight": 0.5, "value": None, "explanation": name}
                for name, share in (("risks", 0.3), ("shared_rows", 0.9))
            ]}, "efficacy": {"score": None, "uncertainty": None, "parts": []}} if "@" in task else {},
            "verdict": {"status": rng.choice(["not checked", "verified"]), "why": "It scored the same."},
        },
    )  # fmt: skip
    versions = [
        {"number": index, "time": _at(at + timedelta(seconds=seconds * index / (len(scores) + 1))),
         "seconds": seconds * index / (len(scores) + 1), "size": 17, "score": score, "valid": True,
         "medal": medal if score == best else None}
        for index, score in enumerate(scores, start=1)
    ]  # fmt: skip
    _write(path / "scores.json", versions)


def _write_rollout(path: Path, text: str, live: bool) -> None:
    place = path / "rollout.json"
    if live:  # what the agent wrote so far
        place = path / "output/rollout/trajectory.json"
        place.parent.mkdir()
    place.write_text(text)


def _write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content))


def _at(when: datetime) -> str:
    return when.isoformat()
