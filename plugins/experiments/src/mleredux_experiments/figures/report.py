"""The report: one offline page for readers without a background in statistics."""

from __future__ import annotations

import json
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from mleredux_experiments.figures.pictures import Picture, pictures
from mleredux_experiments.figures.tables import Table, analysis_tables, cell

if TYPE_CHECKING:
    from mleredux_experiments.analysis.analysis import Analysis

_FILES = files(__package__)


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
    return "\n".join([*parts, _FILES.joinpath("words.html").read_text("utf-8")])


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
    style = _FILES.joinpath("report.css").read_text("utf-8")
    head = f"<head>{meta}<title>{escape(analysis.name)}</title><style>{style}</style></head>"
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
