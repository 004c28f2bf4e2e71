"""Find the tables among the public files by name, quickly, using only the standard library."""

from __future__ import annotations

from pathlib import Path

from mleredux_agent_baseline.facts import Facts

READERS = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet")
PACKED = (".zip", ".gz", ".bz2", ".xz")


class NotForBaseline(Exception):
    """The task has no tables that this agent can learn from; the message states what is missing."""


def table_type(path: Path) -> str | None:
    """Return the suffix of a table, such as `.csv` for `train.csv.zip`; None for other files."""
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    if suffixes and suffixes[-1] in PACKED:
        suffixes.pop()
    return suffixes[-1] if suffixes and suffixes[-1] in READERS else None


def find_tables(data_dir: Path, depth: int = 2) -> list[Path]:
    """Return tables in a folder and its subfolders, largest first; folders with more than 200 files are skipped."""
    files = sorted(data_dir.iterdir())
    if len(files) > 200:
        return []
    tables = [path for path in files if path.is_file() and table_type(path)]
    if depth > 1:
        for folder in files:
            tables += find_tables(folder, depth - 1) if folder.is_dir() else []
    return sorted(tables, key=lambda path: (-path.stat().st_size, path))


def find_sample(data_dir: Path, facts: Facts) -> Path:
    """Return the sample submission: the file named in `task.json`, or found by its name.

    Raises:
        NotForBaseline: There is no sample submission.
    """
    if facts.sample and (data_dir / facts.sample).is_file():
        return data_dir / facts.sample
    named = [
        path for path in find_tables(data_dir) if "sample" in path.name.lower() or "submission" in path.name.lower()
    ]
    if not named:
        raise NotForBaseline("there is no sample submission among the public files")
    return max(named, key=lambda path: ("submission" in path.name.lower(), "sample" in path.name.lower()))
