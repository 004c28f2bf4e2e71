"""Copies of the answers themselves among public files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from mleredux_audit_leaks.inventory import PublicFile
from mleredux_audit_leaks.report import AuditFinding, Statistic
from mleredux_audit_leaks.truth import Truth

LARGEST_TEXT = 64 << 20
TEXT_BYTES = 1 << 30
"""Maximum total bytes of texts that are searched."""
FEWEST = 5
_BINARY = (
    ".jpg",
    ".jpeg",
    ".png",
    ".tif",
    ".tiff",
    ".wav",
    ".aif",
    ".aiff",
    ".dcm",
    ".zip",
    ".7z",
    ".gz",
    ".npy",
    ".npz",
)


def check_raw(truth: Truth, private: Path, files: list[PublicFile], notes: list[str]) -> Iterator[AuditFinding]:
    """Check for the file of the answers itself, and for lines of it in texts."""
    answers = private / truth.task.answers
    content = answers.read_bytes() if answers.stat().st_size <= 1 << 29 else b""
    size, digest = len(content), hashlib.blake2b(content).digest()
    wanted = _lines(truth)
    remaining = TEXT_BYTES
    for file in files:
        if size and file.size == size and hashlib.blake2b(file.read(size + 1)).digest() == digest:
            yield _finding(file.name, "is the file", 1.0)
            continue
        if file.name.lower().endswith(_BINARY) or truth.is_sample(file.name):
            continue
        if remaining <= 0:
            notes.append(f"Only {TEXT_BYTES >> 30} GB of texts were searched for lines of the answers.")
            return
        data = file.read(LARGEST_TEXT)
        remaining -= len(data)
        if b"\x00" in data[:4096]:
            continue
        met = wanted.intersection(line.strip() for line in data.splitlines())
        answers_met = {line.partition(b",")[2] for line in met}
        share = len(met) / max(len(wanted), 1)
        if len(met) >= FEWEST and share >= 0.02 and len(answers_met) > 1 and _is_significant(truth, share):
            yield _finding(file.name, "contains lines", share)


def _finding(name: str, relation: str, share: float) -> AuditFinding:
    """Return the finding that a file has a share of the lines of the answers."""
    figure = Statistic(name="share of lines", value=share, baseline=0, threshold=0.02)
    message = f"{name} {relation} of the answers."
    return AuditFinding(kind="answers", severity="high", message=message, statistic=figure, examples=(name,))


def _lines(truth: Truth) -> set[bytes]:
    """Return rows of the answers as lines, both whole and with only id and target, except short and multi-line ones."""
    texts: set[str] = set()
    columns = [[str(name) for name in truth.frame.columns]]
    if truth.id_columns:
        columns += [[*truth.id_columns, name] for name in truth.target_columns[:3]]
    for names in columns:
        rows = truth.frame[names[0]].astype(str)
        for name in names[1:]:
            rows = rows + "," + truth.frame[name].astype(str)
        texts |= set(rows[(rows.str.len() >= 3) & ~rows.str.contains("\n", regex=False)])
    return {line.strip().encode() for line in texts}


def _is_significant(truth: Truth, share: float) -> bool:
    """Return whether this share of lines cannot match by chance; with unique ids, chance matches are no more frequent
    than for constants."""
    target = truth.targets[0]
    commonest = float(target.values.value_counts(normalize=True).iloc[0])
    return share > min(0.95, commonest + 0.1) or target.labels.kind != "class"
