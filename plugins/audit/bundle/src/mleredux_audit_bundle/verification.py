"""Verify a bundle from an untrusted source: signature, hashes, consistency, and the grade itself."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from mleredux.errors import DataError, MlereduxError
from mleredux.plugin.artifact import Report
from mleredux.plugin.command import Catalogue, DataStore
from mleredux.plugin.host import grade
from pydantic import BaseModel, ConfigDict, Field
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey

from mleredux_audit_bundle.archive import ENVELOPE, KEY, PAYLOAD_TYPE
from mleredux_audit_bundle.keys import public_key

MOST_BYTES = 64 << 30
"""Maximum total unpacked size of the files in an archive; they are hashed while being read, without unpacking."""
MOST_SUBMISSION = 4 << 30
"""Maximum size of a submission that is graded; a larger one is also invalid in a run."""
_COMPRESSION = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Compression methods used in bundles, which need little memory."""
_FREE_SHARE = 2
"""A submission is unpacked only if the free disk space is at least this multiple of its size."""
_GRADED = tuple(
    [*("valid_submission", "score", "metric", "is_lower_better", "any_medal", "above_median", "percentile", "teams")]
    + [f"{medal}_{figure}" for medal in ("gold", "silver", "bronze") for figure in ("medal", "threshold")]
    + ["median_threshold"]
)
"""Fields of a report that grading computes, all of which must be reproduced."""
_MOST_TEXT = 64 << 20


class _Part(BaseModel):
    """A part of a statement, which may contain unknown fields."""

    model_config = ConfigDict(extra="ignore")


class _Digest(_Part):
    sha256: str


class _Subject(_Part):
    name: str
    digest: _Digest


class _RunClaim(_Part):
    id: str
    task: str
    agent: str
    status: str
    report: dict[str, Any] | None
    submission: _Subject | None
    used: dict[str, Any] = {}

    def claimed(self) -> Report | None:
        """Return the signed report; None if there is none."""
        return None if self.report is None else _report(self.report)


class _Predicate(_Part):
    created_at: str | None = None
    runs: list[_RunClaim]


class _Statement(_Part):
    type: Literal["https://in-toto.io/Statement/v1"] = Field(alias="_type")
    subject: list[_Subject]
    predicate_type: Literal["https://mleredux.github.io/mleredux/attestations/runs/v1"] = Field(alias="predicateType")
    predicate: _Predicate


@dataclass
class RunCheck:
    """The check of a run in the bundle: the signer's claims, and the results of grading here.

    Attributes:
        claimed_score, claimed_medal: Score and medal in the signed report.
        score, medal, percentile: Results of grading its submission here; None if it was not graded here, or has none.
        reproduced: Whether grading here gave the signed result; None if it was not graded here.
        problems: Problems, one sentence each.
        notes: Why something was not checked.
    """

    id: str
    task: str
    agent: str
    status: str
    claimed_score: float | None
    claimed_medal: str | None
    score: float | None = None
    medal: str | None = None
    percentile: float | None = None
    reproduced: bool | None = None
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass
class Verification:
    """The result of checking a bundle.

    Attributes:
        key: Id of the key with which it was signed; None if there is no valid signature.
        trusted: Whether that key is trusted; None if no trusted keys were specified.
        problems: Problems of the bundle as a whole, one sentence each.
    """

    key: str | None = None
    trusted: bool | None = None
    created_at: str | None = None
    runs: list[RunCheck] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def verified(self) -> bool:
        """Return whether there are no problems."""
        return self.key is not None and not self.problems and not any(run.problems for run in self.runs)


def verify_bundle(
    path: Path, *, keys: list[SSlibKey] | None = None, answers: Path | None = None, catalogue: Catalogue | None = None
) -> Verification:
    """Check a bundle.

    Args:
        keys: Trusted keys; None: any signer is accepted.
        answers: A data directory with the prepared tasks, for grading the submissions.
        catalogue: The plugins that grade; required with `answers`.

    Raises:
        MlereduxError: The file is not a bundle.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return _verify(archive, path, keys, answers, catalogue)
    except OSError as error:
        raise MlereduxError(f"{path} can't be read: {error.strerror or error}.") from error
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError) as error:
        raise MlereduxError(f"{path} is not a bundle: {error}.", hint="See `mleredux bundle`.") from error


def _verify(
    archive: zipfile.ZipFile,
    path: Path,
    keys: list[SSlibKey] | None,
    answers: Path | None,
    catalogue: Catalogue | None,
) -> Verification:
    names = archive.namelist()
    if ENVELOPE not in names or KEY not in names:
        raise MlereduxError(f"{path} is not a bundle: {ENVELOPE} or {KEY} is missing.", hint="See `mleredux bundle`.")
    if any(entry.compress_type not in _COMPRESSION for entry in archive.infolist()):
        raise MlereduxError(f"{path} is not a bundle: its files are not compressed with deflate.")
    done = Verification()
    if len(set(names)) != len(names):
        done.problems.append("The archive has two files with the same name.")
    statement = _signed(archive, done, keys)
    if statement is None:
        return done
    _check_files(archive, statement, done)
    done.created_at = statement.predicate.created_at
    ids = [claim.id for claim in statement.predicate.runs]
    if len(set(ids)) != max(1, len(ids)):
        done.problems.append("The statement lists no run, or the same run twice.")
    for claim in statement.predicate.runs:
        checked = _check_run(archive, claim)
        if answers is not None and catalogue is not None and not done.problems:
            _grade_again(archive, claim, checked, DataStore(answers), catalogue)
            if checked.reproduced is None and (checked.claimed_score, checked.claimed_medal) != (None, None):
                checked.problems.append("Grading did not confirm its score and medal.")
        done.runs.append(checked)
    return done


def _signed(archive: zipfile.ZipFile, done: Verification, keys: list[SSlibKey] | None) -> _Statement | None:
    """Return the statement if its signature is valid and its format is known."""
    try:
        envelope = Envelope.from_dict(json.loads(_text(archive, ENVELOPE)))
        own = public_key(_text(archive, KEY), f"{KEY} in the archive")
        (payload,) = envelope.verify([own], 1).values()
    except VerificationError:
        done.problems.append("The signature does not match the statement and the key in the archive.")
        return None
    except Exception as error:  # a hostile envelope may break the reader in any way
        done.problems.append(f"The envelope can't be read ({type(error).__name__}).")
        return None
    done.key = payload.keyid
    if keys is not None:
        done.trusted = any(key.keyid == payload.keyid and key.keyval == payload.keyval for key in keys)
        if not done.trusted:
            done.problems.append("It was signed with a different key.")
    try:
        statement = _Statement.model_validate_json(envelope.payload)
        for claim in statement.predicate.runs:
            claim.claimed()
    except ValueError:
        statement = None
    if statement is None or envelope.payload_type != PAYLOAD_TYPE:
        done.problems.append("The signed statement is not about runs, or has an unsupported version.")
        return None
    return statement


def _check_files(archive: zipfile.ZipFile, statement: _Statement, done: Verification) -> None:
    """Compare the files with the signed hashes; submissions may be left out, but nothing may be added."""
    if sum(entry.file_size for entry in archive.infolist()) > MOST_BYTES:
        raise MlereduxError(f"The archive unpacks to more than {MOST_BYTES >> 30} GiB.")
    unsigned = set(archive.namelist()) - {ENVELOPE, KEY}
    submissions = {claim.submission.name for claim in statement.predicate.runs if claim.submission}
    for subject in statement.subject:
        if subject.name not in unsigned:
            if subject.name not in submissions:
                done.problems.append(f"{subject.name} is missing.")
            continue
        unsigned.discard(subject.name)
        with archive.open(subject.name) as file:
            hashed = hashlib.file_digest(file, "sha256")  # type: ignore[arg-type]
        if hashed.hexdigest() != subject.digest.sha256:
            done.problems.append(f"{subject.name} differs from the signed file.")
    signed = {subject.name for subject in statement.subject}
    done.problems += [f"{name} is not a signed file." for name in sorted(submissions - signed)]
    done.problems += [f"{name} is not signed." for name in sorted(unsigned)]


def _check_run(archive: zipfile.ZipFile, claim: _RunClaim) -> RunCheck:
    claimed = claim.claimed()
    score, medal = (getattr(claimed, name, None) for name in ("score", "medal"))
    checked = RunCheck(claim.id, claim.task, claim.agent, claim.status, score, medal)
    if claim.submission is not None and not claim.submission.name.startswith(f"runs/{claim.id}/"):
        checked.problems.append("Its submission is that of another run.")
    name = f"runs/{claim.id}/report.json"
    if name in archive.namelist():
        try:
            same = _report(json.loads(_text(archive, name))) == claimed
        except (ValueError, AttributeError):
            same = False
        if not same:
            checked.problems.append("Its report differs from the report in the statement.")
    return checked


def _report(content: dict[str, Any]) -> Report:
    """Return a report including the results withheld by its verdict, ignoring fields of later versions."""
    report = Report.model_validate({name: value for name, value in content.items() if name in Report.model_fields})
    return report.model_copy(update=report.verdict.withheld)


def _grade_again(
    archive: zipfile.ZipFile, claim: _RunClaim, checked: RunCheck, store: DataStore, catalogue: Catalogue
) -> None:
    """Grade the submission here, and compare all results of grading."""
    claimed, submission = claim.claimed(), claim.submission
    if claimed is None or submission is None:
        checked.notes.append("None of its submissions was graded.")
        return
    if submission.name not in archive.namelist():
        checked.notes.append("The submission is not in the archive; only its hash is.")
        return
    try:
        task = catalogue.task(claim.task)
        prepared = store.find(task)
        if prepared is None:
            raise DataError(f"Task {task.id} is not prepared in {store.path}.")
        if task.version != claimed.task_version:
            raise DataError(f"The run used version {claimed.task_version} of the task, not {task.version} as here.")
        with _unpacked(archive, submission.name) as file:
            again = grade(task, file, prepared.private, catalogue)
    except MlereduxError as error:
        checked.notes.append(f"Not graded again: {error}")
        return
    checked.score, checked.medal, checked.percentile = again.score, again.medal, again.percentile
    pairs = {name: (getattr(again, name), getattr(claimed, name)) for name in _GRADED}
    differences = [f"{name} {now} instead of {then}" for name, (now, then) in pairs.items() if not _same(now, then)]
    checked.reproduced = not differences
    if differences:
        also = (
            " The local prepared data differs from the run's." if claim.used.get("task_data") != prepared.digest else ""
        )
        checked.problems.append(f"Grading on this machine resulted in {'; '.join(differences)}.{also}")


@contextmanager
def _unpacked(archive: zipfile.ZipFile, name: str) -> Iterator[Path]:
    """Provide a submission as a file while it is graded.

    Raises:
        MlereduxError: The submission is too large, or does not fit on the disk.
    """
    size = archive.getinfo(name).file_size  # reading stops there
    with tempfile.TemporaryDirectory(prefix="mleredux-verify-") as folder:
        if size > min(MOST_SUBMISSION, shutil.disk_usage(folder).free // _FREE_SHARE):
            raise MlereduxError(f"The submission of {size >> 20:,} MiB is too large to be unpacked in {folder}.")
        file = Path(folder) / Path(name).name
        with archive.open(name) as packed, file.open("wb") as unpacked:
            shutil.copyfileobj(packed, unpacked)
        yield file


def _same(value: Any, other: Any) -> bool:
    numbers = isinstance(value, float) and isinstance(other, float | int) and not isinstance(other, bool)
    return bool(math.isclose(value, other, rel_tol=1e-12) if numbers else value == other)


def _text(archive: zipfile.ZipFile, name: str) -> bytes:
    with archive.open(name) as file:
        content = file.read(_MOST_TEXT + 1)
    if len(content) > _MOST_TEXT:
        raise MlereduxError(f"{name} in the archive is larger than 64 MiB.")
    return content
