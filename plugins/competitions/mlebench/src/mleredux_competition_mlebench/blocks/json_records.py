"""Fast, incremental writing of large JSON documents with many small records, indented like those of Python's `json`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from mleredux_competition_mlebench.blocks.contents import Content

_INDENT = "    "
_BATCH = 10_000


@dataclass(frozen=True)
class IndentedJson(Content):
    """The bytes of `json.dumps(document, indent=4, sort_keys=True)`.

    The json module indents in pure Python and builds the complete text in memory; here its C encoder writes
    thousands of records at a time.

    Attributes:
        document: A list of records, or a mapping whose values may be such lists.
    """

    document: Any

    def stream(self, file: IO[bytes]) -> None:
        for piece in _pieces(self.document, "\n"):
            file.write(piece.encode("ascii"))


def _pieces(value: Any, line: str) -> Iterator[str]:
    """Yield the text of a value in pieces.

    Args:
        line: A line end, and the indentation of the value's line.
    """
    inner = line + _INDENT
    start = inner
    if isinstance(value, dict) and value:
        yield "{"
        for key in sorted(value):
            yield f"{start}{json.dumps(key)}: "
            yield from _pieces(value[key], inner)
            start = "," + inner
        yield line + "}"
    elif isinstance(value, list) and value:
        yield "["
        for first in range(0, len(value), _BATCH):
            batch = value[first : first + _BATCH]
            if all(map(_is_flat, batch)):
                yield start + _records(batch, inner)
                start = "," + inner
                continue
            for item in batch:
                yield start
                yield from _pieces(item, inner)
                start = "," + inner
        yield line + "]"
    else:
        yield json.dumps(value)


def _is_flat(value: Any) -> bool:
    """Return whether a value is a record of plain values."""
    return isinstance(value, dict) and bool(value) and not any(isinstance(item, list | dict) for item in value.values())


def _records(records: list[dict[str, Any]], line: str) -> str:
    """Yield flat records, separated by commas.

    JSON strings contain no line ends, so a brace, a line end and another brace always separate two records.
    """
    inner = line + _INDENT
    text = json.dumps(records, separators=("," + inner, ": "), sort_keys=True)[2:-2]
    text = text.replace("}," + inner + "{", f"{line}}},{line}{{{inner}")
    return f"{{{inner}{text}{line}}}"
