"""Results of runs: the table at the end, JUnit XML, and feedback on each question of a graded document."""

from __future__ import annotations

import json
import shutil
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import click

from mleredux._core.cli.backend import RunView
from mleredux._core.cli.output import cut, printable, safe
from mleredux.errors import MlereduxError, file_errors
from mleredux.models import Event, LlmUse
from mleredux.models.events import StageEnded
from mleredux.models.formats import TONES, duration, facts, short_reference

STYLES = {state: {"good": "green", "warn": "yellow", "bad": "red"}[tone] for state, tone in TONES.items()}
_MEDALS = {"gold": "bold yellow", "silver": "bold white", "bronze": "bold dark_orange3"}
_YIELDING = ("above median", "percentile", "verdict")
_WIDE = 120
"""Width of a terminal below which `_YIELDING` is omitted from the table of several runs."""
_PATHS = ("artifacts", "report")
"""Paths, which are never broken; they are below the table if there are several runs or if they do not fit."""
_FRAME = 20
"""Width of a table of one run without its values."""
_FOLDED = ("task", "agent")
"""Columns that are shortened if space is limited."""


def print_results(runs: Sequence[RunView]) -> None:
    """Print the table of results: name-value lines for one run, one row per run for several."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    if len(runs) == 1:
        title = Text(safe(f"{short_reference(runs[0].agent)} on {runs[0].task}"), "bold")
        table = Table(show_header=False, title=title)
        table.add_column(style="dim", no_wrap=True)
        table.add_column(overflow="fold")
        row = _row(runs[0])
        paths = [(name, row.pop(name)) for name in _PATHS if len(row.get(name, "")) > console.width - _FRAME]
        for name, value in row.items():
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
        paths = [(_arm(run), run.artifacts) for run in runs]
        left_out = (*_PATHS, *(_YIELDING if console.width < _WIDE else ()))
        known = dict.fromkeys(name for row in sorted(rows, key=len, reverse=True) for name in row)
        names = [name for name in known if name not in left_out]
        for name in names:
            table.add_column(name, overflow="fold", no_wrap=name not in _FOLDED)
        for row in rows:
            table.add_row(*(row.get(name, "-") for name in names))
    console.print(table)
    for name, path in paths:
        console.print(Text(safe(f"{name}: {path}"), style="dim"), soft_wrap=True)
    tasks: dict[str, list[str]] = {}
    arms = len({run.agent for run in runs})
    for run in runs:
        for sentence in _sentences(run):
            tasks.setdefault(sentence, []).append(run.task if arms == 1 else _arm(run))
    for sentence, names in tasks.items():
        line = f"{', '.join(dict.fromkeys(names))}: {sentence}"
        console.print(Text(printable(line.encode("utf-8", "surrogatepass")), style="yellow"))
    if len(runs) == 1 and runs[0].report:
        print_feedback(runs[0].report.details)


def _arm(run: RunView) -> str:
    return f"{run.task} · {short_reference(run.agent)}"


def _sentences(run: RunView) -> Iterator[str]:
    """Yield sentences about a run: why it failed, why its result is not trusted, and what else went wrong."""
    report = run.report
    llm = report.ledger.llm if report and report.ledger else None
    untrusted = f"{report.verdict.status}: {report.verdict.why}" if report and not report.verdict.ranked else None
    sentences = (run.message, report.message if report else None, untrusted, *run.warnings)
    yield from filter(None, (*sentences, *(replayed(llm) if llm else ())))


def write_junit(path: Path, runs: Sequence[RunView], codes: Sequence[int]) -> None:
    """Write results as JUnit XML with a test case for each run: `failure` is the agent's fault, `error` is not, and a
    cancelled run is `skipped`.

    Args:
        path: The file to write.
        runs: The runs.
        codes: The exit code of each run.
    """
    from xml.etree import ElementTree

    kinds = [{3: "failure", 130: "skipped"}.get(code, "error") for code in codes]
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
    for kind, name in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        suite.set(name, str(len(suite.findall(f"*/{kind}"))))
    with file_errors(MlereduxError, f"{path} can't be written", "Choose another with --junit-xml."):
        path.parent.mkdir(parents=True, exist_ok=True)
        ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def print_durations(runs: Sequence[RunView], events: Callable[[str], Iterable[Event]], most: int) -> None:
    """Print the slowest stages of runs on stderr, as `pytest --durations` does.

    Args:
        runs: The runs.
        events: Returns the events of the run with an id.
        most: The number of stages to print; 0 means all of them.
    """
    ends = [(run, event.payload) for run in runs for event in events(run.record["id"])]
    stages = [(end.seconds or 0.0, end.stage, run) for run, end in ends if isinstance(end, StageEnded)]
    stages.sort(key=itemgetter(0), reverse=True)
    for seconds, stage, run in stages[: most or None]:
        click.echo(f"{duration(seconds):>12}  {stage:9}  {safe(_arm(run))} · seed {run.record['seed']}", err=True)


def replayed(llm: LlmUse) -> tuple[str, ...]:
    """Return sentences about a replay: how many calls were repeated, and which differ."""
    if llm.replay is None:
        return ()
    calls = "1 call was" if llm.repeated == 1 else f"{llm.repeated} calls were"
    return (f"{calls} answered from {llm.replay}, at no cost.", *llm.differences)


def _row(run: RunView) -> dict[str, Any]:
    from rich.text import Text

    figures = dict(facts(run.report, brief=True)) if run.report else {}
    medal = figures.get("medal", "")
    down = run.report.ledger.llm.outage_seconds if run.report and run.report.ledger and run.report.ledger.llm else 0
    return {
        "status": Text(run.status, style=STYLES.get(run.status, "")),
        "score": "-",
        **{name: safe(value) for name, value in figures.items()},
        **({"medal": Text(medal, style=_MEDALS.get(medal, ""))} if medal else {}),
        "time": duration(run.seconds) + (f", {duration(down)} of it paused: no model provider" if down else ""),
        "artifacts": Text(run.artifacts),
        **({"report": Text(run.page)} if run.page else {}),
    }


_INDENT = "    "
_MAX_CHARACTERS = 400


def print_feedback(details: Mapping[str, Any]) -> None:
    """Print the parts of a score, as stored in the details of a report; print nothing for reports without parts.

    Args:
        details: Sections by name, each with `score` and `parts`; a part has `name`, `score`, `weight`, `explanation`,
            and a `value`, which may contain the `given` and the `true` value.
    """
    for name, section in details.items():
        parts = section.get("parts") if isinstance(section, Mapping) else None
        if not isinstance(parts, list) or not parts:
            continue
        score = section.get("score")
        click.echo(f"\n{click.style(safe(name), bold=True)}" + (f"  {score:.3f}" if score is not None else ""))
        for part in parts:
            _print_part(part)


def _print_part(part: Mapping[str, Any]) -> None:
    score, weight, value = part.get("score"), part.get("weight"), part.get("value")
    points = f"{score * weight:.2f} of {weight:.2f} points" if score is not None and weight is not None else ""
    click.echo(f"  {safe(str(part['name']))}  {points}".rstrip())
    answered = value if isinstance(value, Mapping) and {"given", "true"} & set(value) else {}
    for label, key in (("answered", "given"), ("holds", "true")):
        if key in answered:
            _print_wrapped(f"{label}: {_short(answered[key])}")
    if part.get("explanation"):
        _print_wrapped(safe(str(part["explanation"])))


def _print_wrapped(text: str) -> None:
    width = min(max(shutil.get_terminal_size().columns, 40), 120)
    click.echo(textwrap.fill(text, width, initial_indent=_INDENT, subsequent_indent=_INDENT, break_on_hyphens=False))


def _short(value: Any) -> str:
    if value in (None, "", [], {}):
        return "nothing"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return cut(safe(" ".join(text.split())), _MAX_CHARACTERS)
