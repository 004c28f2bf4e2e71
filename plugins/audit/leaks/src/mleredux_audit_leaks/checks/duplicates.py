"""Rows and files that training and test data share, exactly or nearly."""

from __future__ import annotations

import hashlib
import io
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from mleredux_audit_leaks.inventory import PublicFile
from mleredux_audit_leaks.report import AuditFinding, Statistic
from mleredux_audit_leaks.statistics import Ints, skill, transfer
from mleredux_audit_leaks.truth import Joined, Known, Truth, normal_ids, sides_of

LEAST = 0.01
"""Minimum share of test rows (or files) with a copy in the training data, in excess of chance."""
FEWEST = 3
SHORT = 24
"""Mean number of characters below which a single column does not identify a row."""
HASHED_BYTES = 2 << 30
"""Maximum total bytes of files that are read for hashes."""
PICTURES = 3000
MOST_BITS_APART = 6
"""Maximum number of different bits among the 64 of a perceptual hash: copies that were saved again, made smaller or
made brighter differ in fewer bits; other images are at least 11 bits apart."""


def check_rows(truth: Truth, joined: list[Joined], known: list[Known], seed: int) -> Iterator[AuditFinding]:
    """Check for test rows that occur in the training data, over the columns of both except ids and targets."""
    labelled = {train.table.name: train for train in reversed(known)}  # one target is enough to show copies
    for test in joined:
        if len(np.unique(test.rows)) < 0.5 * len(truth.first_rows) or truth.is_sample(test.table.name):
            continue
        for train in labelled.values():
            left_out = {*truth.id_columns, *truth.target_columns, train.target.name}
            shared = [name for name in train.features if name in test.table.frame and name not in left_out]
            shared = [name for name in shared if not _names_rows(train.table.frame[name])]
            # A short value that repeats identifies a group; a long text that repeats is a copy.
            if len(shared) == 1 and test.table.frame[shared[0]].str.len().mean() < SHORT:
                continue
            if shared and train.table.name != test.table.name:
                yield from _copies(test, train, shared, seed)


def _names_rows(column: pd.Series) -> bool:
    """Return whether a column merely numbers the rows."""
    return column.nunique() == len(column) and bool(re.search(r"(^|_)id$|^index$|^unnamed", str(column.name), re.I))


def _copies(test: Joined, source: Known, shared: list[str], seed: int) -> Iterator[AuditFinding]:
    mine, theirs = source.table.frame[shared], test.table.frame[shared]
    for way, change in (("exact", lambda frame: frame), ("near", _blur)):
        train, tested = change(mine), change(theirs)
        codes = _codes(pd.concat([train, tested], ignore_index=True))
        known, wanted = codes[: len(mine)], codes[len(mine) :]
        hit = np.isin(wanted, known)
        chance = _chance(train, tested, seed)
        above = float(hit.mean()) - chance
        if above < LEAST or hit.sum() < FEWEST or chance > 0.5 * hit.mean():
            continue
        rows = np.flatnonzero(hit)
        truths = source.target.labels.take(test.rows[rows])
        predicted = transfer(known, source.labels, np.where(hit, wanted, -1))[rows]
        skilled = skill(truths, predicted) if len(np.unique(truths.values)) > 1 else 0.0
        agree = float(np.isclose(predicted, truths.values).mean())
        tells = agree >= 0.9 or skilled >= (0.5 if truths.kind == "class" else 0.9)
        severity = "high" if above >= 0.05 and tells else "medium"
        yield AuditFinding(
            kind="duplicates",
            severity=severity if above >= 0.02 or severity == "high" else "low",
            message=f"Rows of {test.table.name} have {way} copies in {source.table.name}, with {source.target.name!r}.",
            statistic=Statistic(name="share of copies", value=float(hit.mean()), baseline=chance, threshold=LEAST),
            figures={
                "copies": int(hit.sum()),
                "share of copies whose labels agree": round(agree, 4),
                "columns compared": len(shared),
            },
            examples=tuple(f"{test.table.name}: row {row + 1}" for row in rows[:3]),
        )
        return


def _codes(frame: pd.DataFrame) -> Ints:
    return np.asarray(pd.factorize(pd.util.hash_pandas_object(frame, index=False))[0], dtype=np.int64)


def _chance(train: pd.DataFrame, tested: pd.DataFrame, seed: int) -> float:
    """Return the share of copies after each column of the test rows is shuffled independently."""
    rng = np.random.default_rng(seed)
    mixed = pd.DataFrame({name: rng.permutation(tested[name].to_numpy()) for name in tested.columns})
    codes = _codes(pd.concat([train, mixed.astype(object)], ignore_index=True).astype(str))
    return float(np.isin(codes[len(train) :], codes[: len(train)]).mean()) if tested.shape[1] > 1 else 0.0


def _blur(frame: pd.DataFrame) -> pd.DataFrame:
    """Round numbers to three significant digits, and reduce texts to their letters and digits."""
    blurred = {}
    for name in frame.columns:
        numbers = pd.to_numeric(frame[name], errors="coerce")
        if numbers.notna().mean() > 0.9:
            blurred[name] = numbers.map(lambda value: f"{value:.3g}")
        else:
            blurred[name] = frame[name].astype(str).str.lower().str.replace(r"[\W_]+", "", regex=True)
    return pd.DataFrame(blurred)


def check_files(truth: Truth, files: list[PublicFile], known: list[Known], notes: list[str]) -> Iterator[AuditFinding]:
    """Check for test files that are training files: the same bytes, or images that look the same."""
    sides = sides_of(truth, files)
    if not sides["test"] or not sides["train"]:
        return
    sizes = {side: {file.size for file in sides[side]} for side in sides}
    both = {size for size in sizes["test"] & sizes["train"] if size > 16}
    copies = _matches({side: [file for file in sides[side] if file.size in both] for side in sides}, notes)
    yield from _files_finding(truth, copies, len(sides["test"]), known, "identical")
    if sum(len(pairs) for pairs in copies.values()) == 0:
        pictures = {side: [file for file in sides[side] if file.kind == "picture"] for side in sides}
        alike = _alike(pictures, notes)
        looked_at = min(len(pictures["test"]), PICTURES)
        yield from _files_finding(truth, alike, looked_at, known, "looking the same")


def _matches(sides: dict[str, list[PublicFile]], notes: list[str]) -> dict[str, list[str]]:
    """Return the training files with the same content, by test file."""
    remaining, by_digest = HASHED_BYTES, defaultdict(list)
    for file in sides["train"] + sides["test"]:
        remaining -= file.size
        if remaining < 0:
            notes.append(f"Only {HASHED_BYTES >> 30} GB of files were compared by content.")
            break
        by_digest[hashlib.blake2b(file.read(file.size + 1), digest_size=16).digest()].append(file)
    tests = {file.name for file in sides["test"]}
    copies: dict[str, list[str]] = {}
    for group in by_digest.values():
        trains = [file.name for file in group if file.name not in tests]
        if 0 < len(trains) <= 5:  # an empty image that occurs everywhere does not count as a copy
            copies.update({file.name: trains for file in group if file.name in tests})
    return copies


def _alike(sides: dict[str, list[PublicFile]], notes: list[str]) -> dict[str, list[str]]:
    """Return the training images with nearly the same perceptual hash, by test image."""
    if not sides["test"] or not sides["train"]:
        return {}
    try:
        from imagehash import phash
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        notes.append(
            "Images were not compared by perceptual hashes; to enable: pip install 'mleredux-audit-leaks[images]'."
        )
        return {}
    prints: dict[str, dict[str, Any]] = {"train": {}, "test": {}}
    for side, files in sides.items():
        if len(files) > PICTURES:
            notes.append(f"Only {PICTURES} of {len(files)} {side} images were compared by perceptual hashes.")
        for file in files[:: max(1, len(files) // PICTURES)][:PICTURES]:
            try:
                with Image.open(io.BytesIO(file.read(32 << 20))) as picture:
                    grey = picture.convert("L")
                    coarse = np.asarray(grey.resize((17, 16)), dtype=np.int16)
                    if (np.diff(coarse) > 2).sum() >= 24:  # flat images all look the same
                        prints[side][file.name] = np.where(phash(grey).hash.ravel(), 1, -1)
            except (UnidentifiedImageError, OSError, ValueError, Image.DecompressionBombError):
                continue
    if not prints["test"] or not prints["train"]:
        return {}
    names, hashes = list(prints["train"]), np.array(list(prints["train"].values()), dtype=np.float32)
    copies = {}
    for name, bits in prints["test"].items():
        near = np.flatnonzero(hashes @ bits.astype(np.float32) >= bits.size - 2 * MOST_BITS_APART)
        if 0 < len(near) <= 5:
            copies[name] = [names[number] for number in near]
    return copies


def _files_finding(
    truth: Truth, copies: dict[str, list[str]], looked_at: int, known: list[Known], way: str
) -> Iterator[AuditFinding]:
    share = len(copies) / max(looked_at, 1)
    if not copies or share < 0.001:
        return
    figures: dict[str, float | int | str] = {"copies": len(copies)}
    agree = _agreement(truth, copies, known)
    if agree is not None:
        figures["share of copies whose labels agree"] = round(agree, 4)
    strong = share >= 0.05 and len(copies) >= FEWEST and (agree is None or agree >= 0.8)
    severity = "high" if strong and agree is not None else "medium" if share >= LEAST else "low"
    yield AuditFinding(
        kind="duplicates",
        severity=severity,
        message=f"Test files have copies among the training files, {way}.",
        statistic=Statistic(name="share of test files with a copy", value=share, baseline=0, threshold=0.001),
        figures=figures,
        examples=tuple(f"{name} = {trains[0]}" for name, trains in sorted(copies.items())[:3]),
    )


def _agreement(truth: Truth, copies: dict[str, list[str]], known: list[Known]) -> float | None:
    """Return the share of copies with equal labels, among those whose labels are both known."""
    keys = normal_ids(pd.Series([name.replace("!", "/") for name in copies]))
    rows = truth.first_rows.reindex(keys).to_numpy(dtype=float)
    sources = normal_ids(pd.Series([trains[0].replace("!", "/") for trains in copies.values()]))
    for train in known:
        for name in train.features[:20]:
            labels = pd.Series(train.labels.values, index=normal_ids(train.table.frame[name]))
            found_labels = np.asarray(labels[~labels.index.duplicated()].reindex(sources), dtype=float)
            usable = np.isfinite(found_labels) & np.isfinite(rows)
            if usable.sum() >= FEWEST:
                mine = train.target.labels.values[rows[usable].astype(int)]
                return float(np.isclose(mine, found_labels[usable]).mean())
    return None
