"""Check a bundle, which may come from anyone: signature, hashes, agreement, and the grade itself."""

from __future__ import annotations

import hashlib
import json
import math
import tempfile
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from mleredux.errors import DataError, MlereduxError
from mleredux.plugin.command import Catalogue, DataStore
from mleredux.plugin.host import grade
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey

from mleredux_audit_bundle.archive import ENVELOPE, KEY, PAYLOAD_TYPE, PREDICATE_TYPE, STATEMENT_TYPE
from mleredux_audit_bundle.keys import public_key

MOST_BYTES = 64 << 30
"""What the files of an archive may have, unpacked."""
_MOST_TEXT = 64 << 20
_PIECE = 1 << 20


@dataclass
class RunCheck:
    """What is known of a run in the bundle.

    Attributes:
        regraded: The score that its submission got here; None if it was not graded here or has no score.
        reproduced: Whether grading here gave the signed result; None if it was not graded here.
        problems: What is wrong, a sentence each.
        notes: Why something was not checked.
    """

    id: str
    task: str
    agent: str
    status: str
    score: float | None
    medal: str | None
    regraded: float | None = None
    reproduced: bool | None = None
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass
class Verification:
    """The result of checking a bundle.

    Attributes:
        key: The id of the key that signed it; None if no valid signature was found.
        trusted: Whether that key is one of those given as trusted; None if none was given.
        problems: What is wrong with the bundle as a whole, a sentence each.
    """

    key: str | None = None
    trusted: bool | None = None
    created_at: str | None = None
    runs: list[RunCheck] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def verified(self) -> bool:
        """Whether nothing is wrong."""
        return self.key is not None and not self.problems and not any(run.problems for run in self.runs)


def verify_bundle(
    path: Path, *, keys: list[SSlibKey] | None = None, answers: Path | None = None, catalogue: Catalogue | None = None
) -> Verification:
    """Check a bundle.

    Args:
        keys: Trusted keys; None if any signer will do.
        answers: A data directory with the prepared tasks, to grade the submissions with.
        catalogue: Plugins that grade; needed with `answers`.

    Raises:
        MlereduxError: The file is not a bundle.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return _verify(archive, path, keys, answers, catalogue)
    except OSError as error:
        raise MlereduxError(f"{path} can't be read: {error.strerror or error}.") from error
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
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
        raise MlereduxError(f"{path} is not a bundle: it has no {ENVELOPE} or no {KEY}.", hint="See `mleredux bundle`.")
    done = Verification()
    if len(set(names)) != len(names):
        done.problems.append("The archive has two files of one name.")
    statement = _signed(archive, done, keys)
    if statement is None:
        return done
    _check_files(archive, statement, done)
    done.created_at = statement["predicate"].get("created_at")
    for told in statement["predicate"]["runs"]:
        checked = _check_run(archive, told)
        if answers is not None and catalogue is not None and not done.problems:
            _grade_again(archive, told, checked, DataStore(answers), catalogue)
        done.runs.append(checked)
    return done


def _signed(archive: zipfile.ZipFile, done: Verification, keys: list[SSlibKey] | None) -> dict[str, Any] | None:
    """The statement, if its signature is valid and its form is known."""
    try:
        envelope = Envelope.from_dict(json.loads(_text(archive, ENVELOPE)))
        own = public_key(_text(archive, KEY), f"{KEY} in the archive")
        (found,) = envelope.verify([own], 1).values()
    except VerificationError:
        done.problems.append("The signature does not fit the statement and the key in the archive.")
        return None
    except Exception as error:  # a hostile envelope may break the reader in any way
        done.problems.append(f"The envelope can't be read ({type(error).__name__}).")
        return None
    done.key = found.keyid
    if keys is not None:
        done.trusted = any(key.keyid == found.keyid and key.keyval == found.keyval for key in keys)
        if not done.trusted:
            done.problems.append("It is signed by another key than the one given.")
    try:
        statement: dict[str, Any] = json.loads(envelope.payload)
        known = (envelope.payload_type, statement["_type"], statement["predicateType"])
        if known != (PAYLOAD_TYPE, STATEMENT_TYPE, PREDICATE_TYPE):
            raise ValueError(known)
        for subject in statement["subject"]:
            subject["name"], subject["digest"]["sha256"]
        for told in statement["predicate"]["runs"]:
            told["id"], told["task"], told["agent"], told["status"], told["report"], told["submission"]
    except (ValueError, KeyError, TypeError):
        done.problems.append("The signed statement is not one about runs, or of another version.")
        return None
    return statement


def _check_files(archive: zipfile.ZipFile, statement: dict[str, Any], done: Verification) -> None:
    """Compare the files with the signed hashes; submissions may be left out, nothing may be added."""
    left = set(archive.namelist()) - {ENVELOPE, KEY}
    submissions = {told["submission"]["name"] for told in statement["predicate"]["runs"] if told["submission"]}
    total = 0
    for subject in statement["subject"]:
        name, expected = subject["name"], subject["digest"]["sha256"]
        if name not in left:
            if name not in submissions:
                done.problems.append(f"{name} is missing.")
            continue
        left.discard(name)
        hashed = hashlib.sha256()
        with archive.open(name) as file:
            while piece := file.read(_PIECE):
                hashed.update(piece)
                total += len(piece)
                if total > MOST_BYTES:
                    raise MlereduxError("The archive unpacks to more than 64 GiB.")
        if hashed.hexdigest() != expected:
            done.problems.append(f"{name} is not the file that was signed.")
    done.problems += [f"{name} is not signed." for name in sorted(left)]


def _check_run(archive: zipfile.ZipFile, told: dict[str, Any]) -> RunCheck:
    report = told["report"] or {}
    medal = next((name for name in ("gold", "silver", "bronze") if report.get(f"{name}_medal")), None)
    checked = RunCheck(told["id"], told["task"], told["agent"], told["status"], report.get("score"), medal)
    name = f"runs/{told['id']}/report.json"
    if name in archive.namelist() and json.loads(_text(archive, name)).get("score") != report.get("score"):
        checked.problems.append("Its report has another score than the statement.")
    return checked


def _grade_again(
    archive: zipfile.ZipFile, told: dict[str, Any], checked: RunCheck, store: DataStore, catalogue: Catalogue
) -> None:
    """Grade the submission here, and compare."""
    report, submission = told["report"], told["submission"]
    if report is None or submission is None:
        checked.notes.append("No submission of it was graded.")
        return
    if submission["name"] not in archive.namelist():
        checked.notes.append("The submission is not in the archive; only its hash is.")
        return
    try:
        task = catalogue.task(told["task"])
        prepared = store.find(task)
        if prepared is None:
            raise DataError(f"Task {task.id} is not prepared in {store.path}.")
        if task.version != report["task_version"]:
            raise DataError(f"The run is of version {report['task_version']} of the task; here is {task.version}.")
        with tempfile.TemporaryDirectory(prefix="mleredux-verify-") as folder:
            file = Path(folder) / Path(submission["name"]).name
            with archive.open(submission["name"]) as packed, file.open("wb") as unpacked:
                _copy(packed, unpacked)
            again = grade(task, file, prepared.private, catalogue)
    except MlereduxError as error:
        checked.notes.append(f"Not graded here: {error}")
        return
    checked.regraded = again.score
    signed_data = (told.get("used") or {}).get("task_data")
    checked.reproduced = again.valid_submission == report["valid_submission"] and _same(again.score, report["score"])
    if not checked.reproduced:
        also = " The prepared data here differs from the run's." if signed_data != prepared.digest else ""
        checked.problems.append(f"Grading here gives {again.score}, the report says {report['score']}.{also}")


def _same(one: float | None, other: float | None) -> bool:
    return one == other or (one is not None and other is not None and math.isclose(one, other, rel_tol=1e-12))


def _copy(packed: IO[bytes], unpacked: IO[bytes]) -> None:
    while piece := packed.read(_PIECE):
        unpacked.write(piece)


def _text(archive: zipfile.ZipFile, name: str) -> bytes:
    with archive.open(name) as file:
        content = file.read(_MOST_TEXT + 1)
    if len(content) > _MOST_TEXT:
        raise MlereduxError(f"{name} in the archive is larger than 64 MiB.")
    return content
