"""New ids for the test rows of a private split, in recorded tables, documents, archives and file names alike."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from mleredux_competition_mlebench.blocks.contents import Content, Csv, Json, JsonLines, SevenZip, Zip
from mleredux_competition_mlebench.blocks.trees import Files, Member

if TYPE_CHECKING:
    import pandas as pd

BARE = r"(.+?)(?:\.[A-Za-z]+)?"
"""Ids that may be followed by the ending of a file's name."""
_LONGEST = 200
_START = 10_000
"""Number of rows in which a column must contain an id of a test row, unless it is a column of ids; searching texts
takes long.
"""
Note = tuple[str, str, Content | Files]
"""Side, name and contents of a file to write."""


@dataclass
class NewIds:
    """New ids by old ones.

    Args:
        pattern: A pattern of cells, or parts of paths, whose first group is an id.

    Attributes:
        texts: New ids that are texts.
        numbers: New ids that are numbers, by column.
        cells: Cells of the answers with ids that are texts, by column.
    """

    pattern: str
    texts: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, dict[Any, Any]] = field(default_factory=dict)
    cells: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of_answers(cls, notes: Iterable[Note], columns: tuple[str, ...], pattern: str, order: Any) -> NewIds:
        """Assign numbers to the ids in the private tables, in an order given by a function of their number."""
        import pandas as pd

        tables = [(side, table) for side, _, what in notes for table in _tables(what)]
        new = cls(pattern)
        for column in columns:
            every = [table[column] for _, table in tables if column in table]
            ids = pd.concat([table[column] for side, table in tables if side == "private" and column in table])
            if pd.api.types.is_numeric_dtype(ids):
                old = ids.unique()
                above = int(max(values.max() for values in every)) + 1
                new.numbers[column] = dict(zip(old.tolist(), (order(len(old)) + above).tolist(), strict=True))
                new.texts |= {str(number): str(other) for number, other in new.numbers[column].items()}
            else:
                new.cells[column] = ids.unique()
                names = ids.astype(str).str.extract(f"^{pattern}$")[0].dropna().unique()
                new.texts |= {name: f"t{number:06d}" for name, number in zip(names, order(len(names)), strict=True)}
        return new

    def text(self, text: str) -> str:
        """Return text with its id replaced, if it has one."""
        match = re.fullmatch(self.pattern, text) if len(text) < _LONGEST else None
        new = self.texts.get(match[1]) if match else None
        return f"{text[: match.start(1)]}{new}{text[match.end(1) :]}" if match and new else text

    def path(self, path: str) -> str:
        """Return a path with its ids replaced; folders named by the first characters of an id follow it."""
        parts, named = path.split("/"), [self.text(part) for part in path.split("/")]
        changed = next((place for place, part in enumerate(parts) if named[place] != part), 0)
        for place, letter in enumerate(parts[:changed]):
            if parts[changed][place : place + 1] == letter:
                named[place] = named[changed][place]
        return "/".join(named)

    def table(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return a table with ids replaced in columns of text, and in columns of numbers with the name of an id."""
        changed = {}
        for name in table.columns:
            column, rule = table[name], cast("tuple[Any, Any]", (slice(None), self.value))
            if name in self.numbers:
                rule = column.isin(list(self.numbers[name])), self.numbers[name].get
            elif name in self.cells:
                rule = column.isin(self.cells[name]), self.value
            elif column.dtype.kind in "biufcmM" or self.value(start := column.head(_START).tolist()) == start:
                continue
            changed[name] = column.copy()
            changed[name].loc[rule[0]] = column.loc[rule[0]].map(rule[1])
        return table.assign(**changed)

    def value(self, value: Any) -> Any:
        """Return a JSON value with its ids replaced, including those in keys."""
        if isinstance(value, dict):
            return {self.text(key): self.value(below) for key, below in value.items()}
        if isinstance(value, list):
            return [self.value(below) for below in value]
        return self.text(value) if isinstance(value, str) else value

    def __call__(self, what: Any) -> Any:
        """Return the contents of a file, or selected files, with their ids replaced."""
        if isinstance(what, Csv | JsonLines):
            return replace(what, table=self.table(what.table))
        if isinstance(what, Json):
            return replace(what, document=self.value(what.document))
        if isinstance(what, Zip | SevenZip):
            return replace(what, members=self(what.members))
        if isinstance(what, Mapping):
            return {self.path(name): self(below) for name, below in what.items()}
        if isinstance(what, Files):
            members = [Member(source, self.path(name)) for source, name in what.members]
            return Files(what.tree, members, [self.path(name) for name in what.folders])
        return what


def _tables(what: Any) -> Iterator[pd.DataFrame]:
    if isinstance(what, Csv | JsonLines):
        yield what.table
    elif isinstance(what, Zip | SevenZip):
        yield from _tables(what.members)
    elif isinstance(what, Mapping):
        yield from itertools.chain.from_iterable(map(_tables, what.values()))
