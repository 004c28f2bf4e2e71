"""The audit of one task."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from pathlib import Path, PurePosixPath

import pandas as pd
from mleredux.models.formats import counted
from mleredux.plugin.task import Task

from mleredux_audit_leaks.checks.columns import check_columns, check_train_columns
from mleredux_audit_leaks.checks.duplicates import check_files as check_copies
from mleredux_audit_leaks.checks.duplicates import check_rows
from mleredux_audit_leaks.checks.files import check_files, check_header_groups
from mleredux_audit_leaks.checks.groups import check_groups, check_id_parts
from mleredux_audit_leaks.checks.order import check_order
from mleredux_audit_leaks.checks.outlines import check_outlines
from mleredux_audit_leaks.checks.raw import check_raw
from mleredux_audit_leaks.checks.sample import check_sample
from mleredux_audit_leaks.checks.texts import check_texts
from mleredux_audit_leaks.checks.values import check_values
from mleredux_audit_leaks.checks.windows import check_windows
from mleredux_audit_leaks.inventory import PublicFile, take_inventory
from mleredux_audit_leaks.report import AuditFinding, AuditReport, by_severity
from mleredux_audit_leaks.tables import MOST_SEQUENCES, MOST_TABLES, Table, read_tables
from mleredux_audit_leaks.truth import Truth, joined_tables, known_tables

TABLE_BYTES = 1 << 30
"""Maximum total bytes of tables that are read."""
MOST_ALIKE = 24
"""Maximum number of similar files under one folder; beyond it, files with mostly distinct names are samples, not
tables."""
SMALL_BYTES = 16 << 20
"""Maximum size of files that are read first, since many such files can be read."""


def audit(task: Task, public: Path, private: Path, *, seed: int = 0) -> AuditReport:
    """Find ways to score on a prepared task without learning.

    Args:
        task: The task; the columns of its submission and the file of its answers determine the held-out data.
        public: Its public files, which are only read.
        private: Its private files.
        seed: Seed for samples and permutations; the same seed and data give the same report.

    Raises:
        DataError: The answers cannot be read as a table.
    """
    truth = Truth(task, private)
    inventory = take_inventory(public)
    notes = inventory.notes
    if truth.cut:
        notes.append("Only the first rows of the answers were checked.")
    findings: list[AuditFinding] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        readable = [file for file in inventory.files if not file.listed_only]
        tables = _tables(readable, notes)
        truth.settle_targets(tables, notes)
        findings += check_raw(truth, private, readable, notes)
        if truth.targets:
            joined = joined_tables(truth, tables)
            known = known_tables(truth, tables, joined)
            findings += check_columns(truth, joined, known, notes, seed)
            findings += check_order(truth, joined, known, notes, seed)
            findings += check_files(truth, inventory.files, notes, seed)
            findings += check_rows(truth, joined, known, seed)
            findings += check_windows(truth, joined, known, seed)
            findings += check_values(truth, tables, seed)
            findings += check_outlines(truth, readable, tables, notes)
            findings += check_copies(truth, readable, known, notes)
            findings += check_groups(truth, joined, known, seed)
            findings += check_id_parts(truth, joined, tables)
            findings += check_header_groups(truth, readable, notes)
            findings += check_texts(truth, joined, tables, findings, seed)
            findings += check_sample(truth, tables, seed)
            findings += check_train_columns(truth, joined, known, seed)
        else:
            notes.append("All answers are equal, so there is nothing to predict.")
    return AuditReport(
        task=task.id,
        task_version=task.version,
        answers=len(truth),
        files=len(inventory.files),
        tables=len(tables),
        findings=by_severity(findings),
        notes=tuple(dict.fromkeys(notes)),
        seed=seed,
    )


def _tables(files: list[PublicFile], notes: list[str]) -> list[Table]:
    """Return the tables among the files; folders full of similar files (one per sample) are skipped."""
    crowds = Counter(map(_crowd, files))
    samples = _sample_trees(files)
    tables: list[Table] = []
    damaged: list[str] = []
    remaining = TABLE_BYTES
    # TFRecords are split into many parts, any of which may belong to the test set.
    for file in sorted(files, key=lambda file: (file.size > SMALL_BYTES, len(file.parts), file.name)):
        if crowds[_crowd(file)] > (MOST_SEQUENCES if "tfrec" in file.name else 12):
            continue
        if _tree(file) in samples:
            continue
        if len(tables) >= MOST_TABLES or remaining <= 0:
            notes.append(f"Only {len(tables)} tables were read.")
            break
        try:
            readable = [table for table in read_tables(file) if len(table.frame) > 1]
        except (ValueError, OSError, KeyError, TypeError, IndexError, OverflowError) as error:
            damaged.append(f"{file.name} ({type(error).__name__})")
            continue
        if readable:
            remaining -= file.size
            tables += readable
            notes += [f"Only the beginning of {table.name} was read." for table in readable if table.cut]
    if damaged:
        notes.append(f"{counted(len(damaged), 'file')} can't be read as tables, such as {damaged[0]}.")
    return _once(_whole(tables), notes)


def _once(tables: list[Table], notes: list[str]) -> list[Table]:
    """Return each table once, even if it exists both packed and unpacked."""
    first_names: dict[tuple[object, ...], str] = {}
    distinct = []
    for table in tables:
        key = (tuple(table.frame.columns), len(table.frame), int(pd.util.hash_pandas_object(table.frame).sum()))
        if key in first_names:
            notes.append(f"{table.name} contains the same table as {first_names[key]}.")
        else:
            first_names[key] = table.name
            distinct.append(table)
    return distinct


def _whole(tables: list[Table]) -> list[Table]:
    """Join parts of one table: files in one folder with the same columns, whose names differ only in digits."""
    parts: dict[tuple[str, tuple[str, ...]], list[Table]] = {}
    for table in tables:
        parts.setdefault((re.sub(r"\d+", "#", table.name), tuple(table.frame.columns)), []).append(table)
    for same in parts.values():
        if len(same) > 1:
            frame = pd.concat([table.frame for table in same], ignore_index=True)
            cut, rows = any(table.cut for table in same), sum(table.rows for table in same)
            same[:] = [Table(same[0].name, frame, cut, rows)]
    return [same[0] for same in parts.values()]


def _sample_trees(files: list[PublicFile]) -> set[tuple[str, str]]:
    """Return trees of many similar files with mostly distinct names: these are samples, even if each folder has few of
    them."""
    names: dict[tuple[str, str], list[str]] = {}
    for file in files:
        names.setdefault(_tree(file), []).append(file.parts[-1])
    return {
        tree
        for tree, of_tree in names.items()
        if len(of_tree) > MOST_SEQUENCES or (len(of_tree) > MOST_ALIKE and len(set(of_tree)) > 0.5 * len(of_tree))
        if "tfrec" not in tree[1]
    }


def _tree(file: PublicFile) -> tuple[str, str]:
    return file.parts[0], PurePosixPath(file.parts[-1]).suffix.lower()


def _crowd(file: PublicFile) -> tuple[str, str]:
    return "/".join(file.parts[:-1]), PurePosixPath(file.parts[-1]).suffix.lower()
