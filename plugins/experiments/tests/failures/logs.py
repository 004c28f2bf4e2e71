"""Runs of logs with labels: `logs/PART/NAME/log.txt`, `meta.json` and `labels.json`, as `logs/README.md` describes."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from mleredux_experiments.failures import Finding
from mleredux_experiments.results.sources import read_run

LOGS = Path(__file__).with_name("logs")
CAUSES = {
    "packages": {"package"},
    "downloads": {"network"},
    "llm-api": {"api"},
    "memory": {"resources:memory"},
    "disk": {"resources:disk"},
    "time": {"resources:time", "avoidable-timeout"},
    "code-error": {"code-error", "resources:device"},
    "lost-submission": {"crash-at-end"},
    "worse-submission": {"selection"},
}
"""Our categories of the labels' causes, where they have other names."""


class Labelled(NamedTuple):
    """A run with its label, and what the rules say."""

    name: str
    label: dict[str, Any]
    findings: tuple[Finding, ...]

    @property
    def primary(self) -> str:
        """The cause that ended the run by the rules, in the labels' words."""
        return cause_of(next((one for one in self.findings if not one.overcome), None))

    @property
    def right(self) -> bool:
        """Whether the label names or accepts it."""
        return self.primary in {self.label["primary"], *self.label.get("accept", ())}

    @property
    def truth(self) -> str:
        """The cause by the label; that of the rules if the label accepts it."""
        return self.primary if self.right else self.label["primary"]

    @property
    def overcome(self) -> set[str]:
        """Causes of what was overcome, by the rules."""
        return {cause_of(one) for one in self.findings if one.overcome}


def cause_of(finding: Finding | None) -> str:
    """A finding in the labels' words."""
    if finding is None:
        return "none"
    names = {finding.category, f"{finding.category}:{finding.kind}"}
    return next((cause for cause, ours in CAUSES.items() if names & ours), finding.category)


def labelled(part: str, add_run: Callable[..., Path]) -> Iterator[Labelled]:
    """The runs of a part: a folder, or `PART.tar.xz`."""
    folder = LOGS / part
    for number, (name, label) in enumerate(sorted(json.loads((folder / "labels.json").read_text()).items())):
        meta = json.loads((folder / name / "meta.json").read_text())
        run = written(add_run, number, meta, (folder / name / "log.txt").read_text(errors="replace"))
        yield Labelled(name, label, read_run(run, rollouts=True).findings or ())


def written(add_run: Callable[..., Path], number: int, meta: dict[str, Any], log: str) -> Path:
    """The run as the product stores it; its task has a leaderboard that no score reaches."""
    submission, by, code = meta["submission"], meta["ended_by"], meta["exit_code"]
    cause = {"time": "agent_timed_out", "memory": "out_of_memory"}.get(by, "agent_crashed" if code != 0 else None)
    score = meta.get("score") if submission["valid"] else None
    best = 1e9 if meta["higher_is_better"] else -1e9
    graded = {f"{name}_threshold": best for name in ("gold", "silver", "bronze", "median")} | {
        "submission_exists": submission["exists"],
        "valid_submission": submission["valid"],
        "is_lower_better": not meta["higher_is_better"],
        "message": None if submission["valid"] else submission["message"],
        "above_median": False,
        "metric": meta.get("metric", "accuracy"),
    }
    run = add_run(
        *("task", "agent", number),
        score=score,
        state="cancelled" if by == "cancelled" else "failed" if cause else "done",
        cause="cancelled" if by == "cancelled" else cause,
        limits={"time_limit": float(meta["time_limit_seconds"])},
        graded=graded,
        versions=[
            {name: version[name] for name in ("seconds", "score", "valid")}
            for version in meta.get("versions", ())
            if version["exists"]
        ],
    )
    (run / "logs").mkdir()
    (run / "logs" / "agent.log").write_text(log)
    outcome = {
        "exit_code": code,
        "signal": getattr(signal, meta["signal"] or "", None),
        "seconds": meta["seconds"],
        "limit": by if by in ("time", "memory") else None,
    }
    first, last = (json.loads(line) for line in (run / "events.jsonl").read_text().splitlines())
    first["data"]["outcome"] = outcome
    lines = [json.dumps(event, separators=(",", ":")) for event in (first, last)]
    (run / "events.jsonl").write_text("\n".join(lines) + "\n")
    if meta["searches"]:
        (run / "rollout.json").write_text(json.dumps({"steps": [{"source": "agent"}] * 2}))
    return run
