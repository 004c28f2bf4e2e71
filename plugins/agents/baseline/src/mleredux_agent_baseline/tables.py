"""Find and read the tables of a task: CSV, TSV, JSON, JSON lines and Parquet, plain or compressed."""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mleredux_agent_baseline.files import table_type

CHUNK_ROWS = 50_000


@dataclass(frozen=True)
class Tables:
    """The three tables of a task.

    Attributes:
        train: The training table with targets, limited to as many rows as fit (see `kept`).
        test: One row for each row of the sample, in the same order, without targets.
        sample: The sample submission.
        kept: Share of the training rows that was read.
        sample_path: The path of the sample.
    """

    train: pd.DataFrame
    test: pd.DataFrame
    sample: pd.DataFrame
    sample_path: Path
    kept: float = 1.0


def read_table(
    path: Path, *, max_mb: float = 2000, max_rows: int | None = None, seed: int = 0
) -> tuple[pd.DataFrame, float]:
    """Read a table, or a random sample of its rows if it is too large.

    Args:
        max_mb: Maximum size in memory in MB.
        max_rows: Maximum number of rows; None for all.

    Returns:
        The table, and the share of rows that it contains.
    """
    kind = table_type(path)
    if kind in (".csv", ".tsv"):
        return _read_delimited(path, "\t" if kind == ".tsv" else ",", max_mb, max_rows, seed)
    table = pd.read_parquet(path) if kind == ".parquet" else _read_json(path, kind or ".json")
    rows = len(table)
    if max_rows is not None and rows > max_rows:
        table = table.sample(max_rows, random_state=seed).sort_index().reset_index(drop=True)
    return table, len(table) / max(rows, 1)


def _read_delimited(
    path: Path, separator: str, max_mb: float, max_rows: int | None, seed: int
) -> tuple[pd.DataFrame, float]:
    """Read a delimited file in chunks; whenever there are too many rows, drop half of them, and of all later rows."""
    random = np.random.default_rng(seed)
    parts: list[pd.DataFrame] = []
    share, size, rows = 1.0, 0.0, 0
    for chunk in _chunks(path, separator):
        part = chunk if share == 1.0 else chunk[random.random(len(chunk)) < share]
        parts.append(part)
        size += part.memory_usage(deep=True).sum() / 1e6
        rows += len(part)
        while size > max_mb or (max_rows is not None and rows > max_rows):
            parts = [kept[random.random(len(kept)) < 0.5] for kept in parts]
            share, size, rows = share / 2, size / 2, sum(map(len, parts))
    return pd.concat(parts, ignore_index=True), share


def _chunks(path: Path, separator: str) -> Any:
    last: Exception | None = None
    for encoding in ("utf-8", "latin-1"):
        try:
            with _opened(path) as source:
                yield from pd.read_csv(source, sep=separator, chunksize=CHUNK_ROWS, encoding=encoding, low_memory=False)
            return
        except UnicodeDecodeError as error:
            last = error
    raise ValueError(f"{path.name} is neither UTF-8 nor Latin-1: {last}")


class _opened:
    """Open a table: the largest table of a zip archive, or the file itself (pandas decompresses other formats)."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> Any:
        if self.path.suffix.lower() != ".zip":
            return self.path
        self.archive = zipfile.ZipFile(self.path)
        members = [member for member in self.archive.infolist() if table_type(Path(member.filename))]
        members = [member for member in members if not member.filename.startswith("__MACOSX")]
        if not members:
            raise ValueError(f"{self.path.name} contains no table")
        return self.archive.open(max(members, key=lambda member: member.file_size))

    def __exit__(self, *_: object) -> None:
        if self.path.suffix.lower() == ".zip":
            self.archive.close()


def _read_json(path: Path, kind: str) -> pd.DataFrame:
    """Read records, JSON lines, or columns; lists and objects in cells are converted to text."""
    with _opened(path) as source:
        if kind in (".jsonl", ".ndjson"):
            table = pd.read_json(source, lines=True)
        elif isinstance(source, Path) and source.suffix.lower() == ".json":
            table = pd.DataFrame(json.loads(source.read_text(encoding="utf-8")))
        elif isinstance(source, Path):
            table = pd.read_json(source)
        else:
            table = pd.DataFrame(json.loads(source.read().decode("utf-8")))
    for name in table.columns:
        nested = table[name].map(lambda cell: isinstance(cell, list | dict))
        if nested.any():
            table[name] = table[name].map(
                lambda cell: " ".join(map(str, cell)) if isinstance(cell, list) else str(cell)
            )
    return table
