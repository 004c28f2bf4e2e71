"""The table at the end: score, medal, above median, time, where the artifacts are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mleredux._core.cli.backend import RunView
from mleredux._core.cli.feedback import print_feedback
from mleredux._core.cli.output import printable, safe
from mleredux.models import LlmUse
from mleredux.models.formats import TONES, duration, facts, short_reference

STYLES = {state: {"good": "green", "warn": "yellow", "bad": "red"}[tone] for state, tone in TONES.items()}
_MEDALS = {"gold": "bold yellow", "silver": "bold white", "bronze": "bold dark_orange3"}
_BELOW = ("above median", "percentile", "verdict", "artifacts", "report")
_WIDE = 120
"""Width of a terminal below which `_BELOW` is omitted from the table of several runs."""
_FOLDED = ("task", "agent", "artifacts", "report")
"""Columns that are shortened if space is limited."""


def closing_table(runs: Sequence[RunView]) -> None:
    """Print the table: name-value lines for one run, a row each for several."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console, narrow = Console(), False
    if len(runs) == 1:
        table = Table(
            show_header=False, title=Text(safe(f"{short_reference(runs[0].agent)} on {runs[0].task}"), "bold")
        )
        table.add_column(style="dim", no_wrap=True)
        table.add_column(overflow="fold")
        for name, value in _row(runs[0]).items():
            table.add_row(name, value)
    else:
        table = Table(header_style="bold")
        seeds = len({run.record["seed"] for run in runs}) > 1
        rows = [
            {
                "task": Text(safe(run.task)),
                "agent": Text(safe(short_reference(run.agent))),
                **({"seed": str(run.record["seed"])} if seeds else {}),
                **_row(run),
            }
            for run in runs
        ]
        narrow = console.width < _WIDE
        fullest = max(rows, key=len)
        names = [*fullest, *dict.fromkeys(name for row in rows for name in row if name not in fullest)]
        names = [name for name in names if not (narrow and name in _BELOW)]
        for name in names:
            table.add_column(name, overflow="fold", no_wrap=name not in _FOLDED)
        for row in rows:
            table.add_row(*(row.get(name, "-") for name in names))
    console.print(table)
    if narrow:
        for run in runs:
            console.print(Text(safe(f"{run.task} · {short_reference(run.agent)}: {run.artifacts}"), style="dim"))
    for run in runs:
        verdict = run.report.verdict if run.report else None
        untrusted = f"{verdict.status}: {verdict.why}" if verdict and not verdict.ranked else None
        sentences = (run.message, run.report.message if run.report else None, untrusted, *run.warnings)
        for sentence in filter(None, sentences):
            console.print(Text(printable(f"{run.task}: {sentence}".encode("utf-8", "surrogatepass")), style="yellow"))
        llm = run.report.ledger.llm if run.report and run.report.ledger else None
        for sentence in replayed(llm) if llm else ():
            console.print(Text(safe(f"{run.task}: {sentence}"), style="yellow" if llm and llm.differences else ""))
    if len(runs) == 1 and runs[0].report:
        print_feedback(runs[0].report.details)


def write_junit(path: Path, runs: Sequence[RunView], codes: Sequence[int]) -> None:
    """Write results as JUnit's XML: a case for each run; `failure` is the agent's, `error` is not its fault.

    Args:
        codes: The exit code of each run.
    """
    from xml.etree import ElementTree

    kinds = ["failure" if code == 3 else "error" for code in codes]
    suite = ElementTree.Element("testsuite", {"name": "mleredux", "tests": str(len(runs))})
    for run, code, kind in zip(runs, codes, kinds, strict=True):
        name = f"{short_reference(run.agent)}[{run.record['seed']}]"
        case = ElementTree.SubElement(suite, "testcase", classname=safe(run.task), name=safe(name))
        case.set("time", f"{run.seconds:.3f}")
        reason = run.message or (run.report.message if run.report else None) or run.status
        if code:
            ElementTree.SubElement(case, kind, message=safe(reason), type=safe(run.record["cause"] or "invalid"))
        score = f"score {run.report.score}, " if run.report and run.report.valid_submission else ""
        ElementTree.SubElement(case, "system-out").text = safe(f"{score}artifacts in {run.artifacts}")
    for kind in ("failure", "error"):
        suite.set(f"{kind}s", str(len(suite.findall(f"*/{kind}"))))
    path.parent.mkdir(parents=True, exist_ok=True)
    ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def replayed(llm: LlmUse) -> tuple[str, ...]:
    """Sentences on a replay: how many calls were repeated, and which differ."""
    if llm.replay is None:
        return ()
    calls = "1 call was" if llm.repeated == 1 else f"{llm.repeated} calls were"
    return (f"{calls} answered from {llm.replay}, at no cost.", *llm.differences)


def _row(run: RunView) -> dict[str, Any]:
    from rich.text import Text

    found = dict(facts(run.report, brief=True)) if run.report else {}
    medal = found.get("medal", "")
    return {
        "status": Text(run.status, style=STYLES.get(run.status, "")),
        "score": "-",
        **{name: safe(value) for name, value in found.items()},
        **({"medal": Text(medal, style=_MEDALS.get(medal, ""))} if medal else {}),
        "time": duration(run.seconds),
        "artifacts": Text(run.artifacts),
        **({"report": Text(run.page)} if run.page else {}),
    }
