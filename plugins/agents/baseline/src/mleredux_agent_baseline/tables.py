"""Find and read the tables of a task: CSV, TSV, JSON, JSON lines and Parquet, plain or compressed.

Among them, identify the training table, the test table and the sample submission, and align their rows.
"""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mleredux_agent_baseline.files import Facts, NotForBaseline, find_sample, find_tables, table_type

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


def load_tables(
    data_dir: Path, facts: Facts, *, memory_mb: float = 4096, max_rows: int | None = None, seed: int = 0
) -> Tables:
    """Read the three tables, with test rows in the order of the sample.

    Raises:
        NotForBaseline: There is no table to learn from.
    """
    sample_path = find_sample(data_dir, facts)
    sample, _ = read_table(sample_path, max_mb=memory_mb)
    ids = id_columns(sample, facts)
    others = [path for path in find_tables(data_dir) if path != sample_path]
    train_paths = [path for path in others if _named(path, "train", data_dir)]
    test_paths = [path for path in others if _named(path, "test", data_dir) and path not in train_paths]
    if not train_paths:
        raise NotForBaseline("there is no training table (a CSV, JSON or Parquet file with `train` in its name)")
    train, kept = _join_all(train_paths, ids, sample, memory_mb / 8, max_rows, seed)
    test = _read_test(test_paths, sample, ids, memory_mb / 4)
    return Tables(train, test, sample, sample_path, kept)


def id_columns(sample: pd.DataFrame, facts: Facts) -> list[str]:
    """Return the id columns of the sample: those stated by the task, else the first column if there are several."""
    declared = [name for name in facts.id_columns if name in sample.columns]
    if declared:
        return declared
    if facts.target_columns:
        return [name for name in sample.columns if name not in facts.target_columns]
    return [str(sample.columns[0])] if sample.shape[1] > 1 else []


def _named(path: Path, word: str, data_dir: Path) -> bool:
    return any(word in part.lower() for part in path.relative_to(data_dir).parts)


def _join_all(
    paths: list[Path], ids: list[str], sample: pd.DataFrame, max_mb: float, max_rows: int | None, seed: int
) -> tuple[pd.DataFrame, float]:
    """Return the best training table; if it has no targets, the columns of a table of labels are joined."""
    targets = [name for name in sample.columns if name not in ids]
    exact = [path for path in paths if path.name.lower().split(".")[0] == "train"]
    main = exact[0] if exact else paths[0]
    train, kept = read_table(main, max_mb=max_mb, max_rows=max_rows, seed=seed)
    if any(name in train.columns for name in targets):
        return train, kept
    for path in paths:
        if path == main:
            continue
        labels, _ = read_table(path, max_mb=max_mb)
        keys = [name for name in labels.columns if name in train.columns]
        if keys and any(name in labels.columns for name in targets) and not labels.duplicated(keys).any():
            return train.merge(labels, on=keys, how="inner"), kept
    return train, kept


def _read_test(paths: list[Path], sample: pd.DataFrame, ids: list[str], max_mb: float) -> pd.DataFrame:
    """Return the test table in the order of the sample; the sample's ids if there is no test table."""
    exact = [path for path in paths if path.name.lower().split(".")[0] == "test"]
    for path in dict.fromkeys([*exact, *paths]):
        test, kept = read_table(path, max_mb=max_mb)
        if kept < 1:
            raise NotForBaseline(f"{path.name} does not fit into memory")
        aligned = align(test, sample, ids)
        if aligned is not None:
            return aligned
    if ids:
        return sample[ids].copy()
    raise NotForBaseline("there is no test table with a row for each row of the sample submission")


def align(test: pd.DataFrame, sample: pd.DataFrame, ids: list[str]) -> pd.DataFrame | None:
    """Return the rows of `test` in the order of `sample`: by ids if both have unique ids, else by position.

    Returns:
        The rows, or None if they can't be aligned.
    """
    if ids and all(name in test.columns for name in ids):
        if len(test) == len(sample) and all(_text(test[name]) == _text(sample[name]) for name in ids):
            return test
        if not test.duplicated(ids).any():
            place = {key: row for row, key in enumerate(zip(*(_text(test[name]) for name in ids), strict=True))}
            keys = list(zip(*(_text(sample[name]) for name in ids), strict=True))
            if all(key in place for key in keys):
                return test.iloc[[place[key] for key in keys]].reset_index(drop=True)
            return None
    return test if len(test) == len(sample) else None


def _text(values: pd.Series[Any]) -> list[str]:
    return values.astype(str).tolist()
