"""The report: one offline page for readers without a background in statistics."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from mleredux_experiments.figures.pictures import Picture, pictures
from mleredux_experiments.figures.tables import Table, analysis_tables, cell

if TYPE_CHECKING:
    from mleredux_experiments.analysis.analysis import Analysis

_STYLE = """
:root { color-scheme: light dark; --ink: #222; --paper: #fff; --lead: #f3f7fa; --line: #ddd; --note: #555 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8e8e8; --paper: #16181b; --lead: #1f2a33; --line: #3a3f45; --note: #a8adb3 }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.6rem; margin-bottom: .2rem } h2 { font-size: 1.2rem; margin: 2.2rem 0 .3rem }
.lead { font-size: 1.15rem; border-left: 4px solid #0072b2; padding: .3rem .8rem; background: var(--lead) }
figure { margin: .5rem 0; overflow-x: auto }
figure svg { width: 100%; height: auto; min-width: 38rem; max-width: 52rem; background: #fff; border-radius: 4px }
.scroll { overflow-x: auto } table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums }
th, td { padding: .2rem .7rem; border-bottom: 1px solid var(--line); text-align: left; white-space: nowrap }
td.n, th.n { text-align: right } .note { color: var(--note); font-size: .9rem }
dt { font-weight: 600 } dd { margin: 0 0 .4rem 1rem }
@media print {
  :root { --ink: #000; --paper: #fff; --lead: #f3f7fa; --line: #ddd; --note: #555 }
  h2, figure { break-inside: avoid } }
"""
_WORDS = {
    "Tasks like these": "how the figure would vary on other tasks of the same kind. This is the error for saying that "
    "one agent is better than another.",
    "These tasks again": "how the figure would vary if exactly these tasks were run again. Published tables give this "
    "one (±).",
    "Interval of 95 %": "intervals made in this way contain the true value in about 95 of 100 experiments.",
    "p": "how often chance alone gives a difference at least as large, if both agents are equally good.",
    "Point": "one in a hundred: from 40 % to 43 % are three points.",
    "Shrunken": "the difference on one task as estimated with all tasks; a single task's own is mostly luck.",
}


def body(analysis: Analysis, made: list[Picture] | None = None) -> str:
    """Return the content of the page."""
    found = list(pictures(analysis)) if made is None else made
    parts = [f"<h1>{escape(analysis.name)}</h1>"]
    if analysis.question:
        parts.append(f"<p>{escape(analysis.question)}</p>")
    parts += [f'<p class="lead">{escape(sentence)}</p>' for sentence in analysis.sentences]
    notes = [*analysis.changes, *analysis.notes, *(note for one in analysis.comparisons for note in one.notes)]
    for arm in analysis.arms:
        if arm.deterministic:
            notes.append(f"{arm.name} is deterministic: its scores do not depend on the seed.")
        if arm.left_out:
            told = ", ".join(f"{count} {why}" for why, count in arm.left_out.items())
            notes.append(f"{arm.name}: left out, not the agent's fault: {told}.")
    parts += [f'<p class="note">{escape(note)}</p>' for note in notes]
    for picture in found:
        parts.append(f"<h2>{escape(picture.question)}</h2><p>{escape(picture.answer)}</p>")
        parts.append(f'<figure role="img" aria-label="{escape(picture.question)}">{picture.svg()}</figure>')
    parts += [_table(table) for table in analysis_tables(analysis)]
    words = "".join(f"<dt>{escape(word)}</dt><dd>{escape(text)}</dd>" for word, text in _WORDS.items())
    return "\n".join([*parts, f"<h2>Words</h2><dl>{words}</dl>"])


def _table(table: Table) -> str:
    numeric = [any(isinstance(row[i], int | float) for row in table.rows) for i in range(len(table.columns))]

    def line(values: tuple[object, ...], tag: str) -> str:
        cells = (
            f"<{tag}{' class=n' if number else ''}>{escape(cell(value))}</{tag}>"
            for value, number in zip(values, numeric, strict=True)
        )
        return f"<tr>{''.join(cells)}</tr>"

    rows = "".join(line(row, "td") for row in table.rows)
    head = line(table.columns, "th")
    return f'<h2>{escape(table.title)}</h2><div class="scroll"><table>{head}{rows}</table></div>'


def page(analysis: Analysis, made: list[Picture] | None = None) -> str:
    """Return the whole page, which loads no other files."""
    meta = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    head = f"<head>{meta}<title>{escape(analysis.name)}</title><style>{_STYLE}</style></head>"
    return f'<!doctype html>\n<html lang="en">{head}<body>\n{body(analysis, made)}\n</body></html>\n'


def write(analysis: Analysis, folder: Path, formats: tuple[str, ...] = ("svg",)) -> list[Path]:
    """Write `report.html`, `analysis.json` and the plots.

    Returns:
        The paths of the files, the page first.
    """
    folder.mkdir(parents=True, exist_ok=True)
    made = list(pictures(analysis))
    files = [folder / "report.html", folder / "analysis.json"]
    files[0].write_text(page(analysis, made), encoding="utf-8")
    files[1].write_text(json.dumps(analysis.record(), indent=1, allow_nan=False) + "\n", encoding="utf-8")
    for picture in made:
        for suffix in formats:
            files.append(folder / f"{picture.name}.{suffix}")
            picture.save(files[-1])
    return files
