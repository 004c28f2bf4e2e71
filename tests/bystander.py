"""An agent that opens no file: it lists the public folder, reads the status of each entry, and predicts from that."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from mleredux._core.data import Prepared
from mleredux.models import Task
from mleredux_audit_leaks.truth import Truth

FEWEST = 6
PERMUTATIONS = 400


@dataclass(frozen=True)
class Sight:
    """How much more alike neighbours along a mark are than by chance, in standard deviations.

    Attributes:
        rows: The test rows whose files were seen.
        surprise: By mark.
    """

    rows: int
    surprise: dict[str, float]


def look(task: Task, prepared: Prepared) -> Sight | None:
    """Read the status of the files and folders that bear ids of test rows; None if too few do."""
    truth = Truth(task, prepared.private)
    if len(truth.id_columns) != 1 or not truth.targets:
        return None
    rows = {str(key).rpartition("/")[2].partition(".")[0]: int(row) for key, row in truth.first_rows.items()}
    seen: dict[int, dict[str, float]] = {}
    for entry, place in _entries(prepared.public):
        row = rows.get(entry.name.partition(".")[0])
        if row is not None and row not in seen:
            seen[row] = {**_marks(entry), "place in the listing": place, "path": entry.path}  # type: ignore[dict-item]
    if len(seen) < FEWEST:
        return None
    for row, born in zip(seen, _births([str(seen[row].pop("path")) for row in seen]), strict=True):
        seen[row]["birth"] = born
    for place, row in enumerate(sorted(seen, key=lambda row: truth.ids[row])):
        seen[row]["name"] = place
    chosen = np.array(list(seen))
    surprise: dict[str, float] = {}
    target = truth.targets[0]
    classes = target.labels.kind == "class"
    codes = target.labels.values if target.labels.kind == "number" else target.values.rank(method="dense").to_numpy()
    values = codes[chosen] if classes else codes[chosen].argsort().argsort()
    for mark in next(iter(seen.values())):
        along = np.array([seen[row][mark] for row in seen])
        surprise[mark] = _surprise(along, values, classes)
    return Sight(len(chosen), surprise)


def _entries(folder: Path | str) -> list[tuple[os.DirEntry[str], float]]:
    with os.scandir(folder) as listed:
        entries = list(listed)
    found = [(entry, float(place)) for place, entry in enumerate(entries)]
    return found + [below for entry in entries if entry.is_dir() for below in _entries(entry.path)]


def _marks(entry: os.DirEntry[str]) -> dict[str, float]:
    status = os.stat(entry.path)
    return {
        "modification time": float(status.st_mtime_ns),
        "access time": float(status.st_atime_ns),
        "change time": float(status.st_ctime_ns),
        "inode": float(status.st_ino),
        "mode": float(status.st_mode),
        "links": float(status.st_nlink),
    }


def _births(paths: list[str]) -> list[float]:
    born: list[float] = []
    for start in range(0, len(paths), 500):
        shown = subprocess.run(
            ["stat", "--printf", r"%.9W\n", *paths[start : start + 500]], check=True, capture_output=True, text=True
        )
        born += [float(line) for line in shown.stdout.split()]
    return born


def _surprise(along: Any, values: Any, equal: bool) -> float:
    rng = np.random.default_rng(0)
    if len(np.unique(along)) < 2 or len(np.unique(values)) < 2:
        return 0.0
    ordered = values[np.lexsort((rng.random(len(along)), along))]

    def alike(sequence: Any) -> float:
        pairs = sequence[1:] == sequence[:-1] if equal else -np.abs(np.diff(sequence))
        return float(pairs.mean())

    chance = np.array([alike(rng.permutation(ordered)) for _ in range(PERMUTATIONS)])
    return float((alike(ordered) - chance.mean()) / max(float(chance.std()), 1e-9))
