"""Draw the rooms of core in their layers, with the imports between them, as `_static/rooms.svg`."""

from __future__ import annotations

import configparser
from collections import Counter
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
PACKAGE = "mleredux"
WIDTH, ROW, BOX = 1180, 104, 34
"""Sizes in pixels: the width of the image, the distance between layers, the height of a box."""
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1f2328; text-anchor: middle; }
rect { fill: #f6f8fa; stroke: #8c959f; }
path { fill: none; stroke: #8c959f; stroke-opacity: 0.35; }
path.exception { stroke: #cf222e; stroke-dasharray: 5 4; stroke-opacity: 0.9; }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3; } rect { fill: #161b22; } }
"""


def layers() -> list[list[str]]:
    """Return the rooms of core by layer, from the top, as declared in `.importlinter`."""
    parser = configparser.ConfigParser(delimiters=("=",), strict=False)
    parser.read(ROOT / ".importlinter", encoding="utf-8")
    for name in parser.sections():
        declared = parser[name].get("layers", "")
        if f"{PACKAGE}._core.cli" in declared:
            rows = [row for row in declared.splitlines() if row.strip()]
            return [[room.strip() for room in row.split(":")] for row in rows]
    raise LookupError("No contract in .importlinter has the layers of core.")


def _width(label: str) -> float:
    return 18 + 7.0 * len(label)


def draw() -> str:
    """Return the diagram as SVG."""
    graph = grimp.build_graph(PACKAGE, exclude_type_checking_imports=True, cache_dir=None)
    rows = layers()
    rooms = [room for row in rows for room in row]
    room_of = {
        module: room for module in graph.modules for room in rooms if module == room or module.startswith(f"{room}.")
    }
    sizes = Counter(room_of.values())
    imports: Counter[tuple[str, str]] = Counter()
    for importer, room in room_of.items():
        for imported in graph.find_modules_directly_imported_by(importer):
            if room_of.get(imported, room) != room:
                imports[room, room_of[imported]] += 1
    places: dict[str, tuple[float, float]] = {}
    boxes = []
    for depth, row in enumerate(rows):
        labels = {room: f"{room.rpartition('.')[2]} {sizes[room]}" for room in row}
        gap = (WIDTH - sum(map(_width, labels.values()))) / (len(row) + 1)
        left, top = gap, 20 + ROW * depth
        for room, label in labels.items():
            width = _width(label)
            places[room] = (left + width / 2, top)
            boxes.append(f'<rect x="{left:.0f}" y="{top}" width="{width:.0f}" height="{BOX}" rx="6"/>')
            boxes.append(f'<text x="{left + width / 2:.0f}" y="{top + 21}">{label}</text>')
            left += width + gap
    lines = []
    for (importer, imported), number in sorted(imports.items()):
        (x1, y1), (x2, y2) = places[importer], places[imported]
        title = f"<title>{importer} imports {imported}: {number}</title>"
        width = f'stroke-width="{min(4, 0.6 + number / 8):.1f}"'
        if y1 == y2:
            bend = y1 + BOX + 26
            lines.append(
                f'<path d="M{x1:.0f} {y1 + BOX} Q{(x1 + x2) / 2:.0f} {bend} {x2:.0f} {y2 + BOX}" {width}>{title}</path>'
            )
        else:
            kind, start, end = ("exception", y1, y2 + BOX) if y2 < y1 else ("import", y1 + BOX, y2)
            lines.append(f'<path class="{kind}" d="M{x1:.0f} {start} L{x2:.0f} {end}" {width}>{title}</path>')
    height = 20 + ROW * len(rows)
    body = "\n".join([*lines, *boxes])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="The rooms of core in their layers">\n<style>{STYLE}</style>\n{body}\n</svg>\n'
    )
