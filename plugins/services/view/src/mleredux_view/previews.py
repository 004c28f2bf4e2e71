"""Previews of files: a table, an image, a notebook, JSON, or text, with limits for any file."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass, field
from typing import Any

from mleredux_artifact_reports.shared import Excerpt, terminal_text, text_of

IMAGES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp"}
"""Images that browsers draw without executing anything; SVG is shown as text."""
READ_BYTES = 512 << 10
IMAGE_BYTES = 20 << 20
_ROWS, _COLUMNS, _CELL = 200, 40, 200
_CELLS = 200
_TEXT = 200_000


@dataclass(frozen=True)
class Cell:
    """A cell of a notebook: its kind, its source and the text of its output."""

    kind: str
    source: str
    outputs: list[str] = field(default_factory=list)
    images: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Preview:
    """A preview, in which one of `table`, `cells`, `text` and `image` is set.

    Attributes:
        table: Rows of cells, with the header first.
        image: Whether to display the file itself.
        left_out: A description of what is not shown.
    """

    kind: str
    table: list[list[str]] | None = None
    cells: list[Cell] | None = None
    text: str | None = None
    image: bool = False
    left_out: str = ""


def preview_of(name: str, read: Excerpt) -> Preview:
    """Return the preview of a file, from its first `READ_BYTES`."""
    ending = name[name.rfind(".") :].lower() if "." in name else ""
    if ending in IMAGES and read.size <= IMAGE_BYTES:
        return Preview("image", image=True)
    if b"\0" in read.head[:8192]:
        return Preview("binary", left_out="The file is not text.")
    text, cut = text_of(read.head), "Only the beginning is shown." if read.left_out else ""
    if ending in (".csv", ".tsv"):
        return _table(text, "\t" if ending == ".tsv" else ",", cut)
    if ending in (".json", ".ipynb") and not cut:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return Preview("text", text=text[:_TEXT])
        if ending == ".ipynb" and isinstance(value, dict) and isinstance(value.get("cells"), list):
            return _notebook(value["cells"])
        text = json.dumps(value, indent=1, ensure_ascii=False)
    shown = terminal_text(text.encode()) if ending in (".log", ".txt") else text
    return Preview("text", text=shown[:_TEXT], left_out=cut or ("Only the beginning is shown." if text[_TEXT:] else ""))


def _table(text: str, delimiter: str, cut: str) -> Preview:
    rows: list[list[str]] = []
    try:
        for row in csv.reader(io.StringIO(text), delimiter=delimiter):
            if len(rows) > _ROWS:
                cut = f"Only the first {_ROWS} rows are shown."
                break
            rows.append([cell[:_CELL] for cell in row[:_COLUMNS]])
    except csv.Error:
        return Preview("text", text=text[:_TEXT], left_out=cut)
    wide = max(map(len, rows), default=0)
    return Preview("table", table=[row + [""] * (wide - len(row)) for row in rows], left_out=cut)


def _notebook(cells: list[Any]) -> Preview:
    shown = [_cell(cell) for cell in cells[:_CELLS] if isinstance(cell, dict)]
    return Preview("notebook", cells=shown, left_out=f"{len(cells) - _CELLS} more cells" if cells[_CELLS:] else "")


def _cell(cell: dict[str, Any]) -> Cell:
    outputs: list[str] = []
    images: list[str] = []
    listed = cell.get("outputs")
    for output in listed[:20] if isinstance(listed, list) else ():
        if not isinstance(output, dict):
            continue
        data = content if isinstance(content := output.get("data"), dict) else {}
        text = output.get("text") or data.get("text/plain") or "\n".join(map(str, output.get("traceback") or ()))
        if text:
            outputs.append(terminal_text(_joined(text).encode(errors="replace"))[:20_000])
        if image := data.get("image/png"):
            code = "".join(_joined(image).split())
            if len(code) < 4_000_000 and code.replace("+", "").replace("/", "").rstrip("=").isalnum():
                images.append(f"data:image/png;base64,{code}")
    return Cell(str(cell.get("cell_type"))[:20], _joined(cell.get("source"))[:50_000], outputs, images)


def _joined(value: Any) -> str:
    return "".join(map(str, value)) if isinstance(value, list) else str(value or "")
