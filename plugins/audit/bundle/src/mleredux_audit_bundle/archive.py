"""Write a bundle: a zip archive of results, and an in-toto statement about them in a signed DSSE envelope.

The archive contains `statement.dsse.json` (the envelope), `key.pem` (the signer's public key) and, for each run,
`runs/<id>/{run,report,scores}.json` and its submission. The statement (https://in-toto.io/Statement/v1) lists each of
these files with its SHA-256; its predicate describes what ran and the results. It always contains the submission's
hash, but the file itself may be left out.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Iterable
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from mleredux.errors import MlereduxError
from mleredux.plugin.artifact import Run
from mleredux.plugin.files import IntakeLimits, open_below
from securesystemslib.dsse import Envelope
from securesystemslib.signer import CryptoSigner

from mleredux_audit_bundle.keys import public_pem

ENVELOPE, KEY = "statement.dsse.json", "key.pem"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://mleredux.github.io/mleredux/attestations/runs/v1"
_DATE = (1980, 1, 1, 0, 0, 0)
_PIECE = 1 << 20
_LARGEST = IntakeLimits().file_bytes


def write_bundle(
    runs: Iterable[Run], key: Ed25519PrivateKey, path: Path, *, submissions: bool = True
) -> dict[str, Any]:
    """Write the archive of runs that have ended; return the statement.

    Args:
        submissions: Whether to include the submissions themselves, which others need to grade them again.

    Raises:
        MlereduxError: A run has not ended, or the file cannot be written.
    """
    subjects: list[dict[str, Any]] = []
    entries: list[dict[str, Any]] = []
    temporary = path.with_name(f".{path.name}.part")
    try:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            for run in runs:
                if not run.state.final:
                    raise MlereduxError(f"Run {run.id} is {run.state}.", hint="Wait until it has ended.")
                entry = _add_run(archive, run, submissions=submissions)
                subjects += entry
                entries.append(_described(run, entry))
            statement = {
                "_type": STATEMENT_TYPE,
                "subject": subjects,
                "predicateType": PREDICATE_TYPE,
                "predicate": {"created_at": datetime.now(UTC).isoformat(timespec="seconds"), "runs": entries},
            }
            envelope = Envelope(json.dumps(statement, sort_keys=True).encode(), PAYLOAD_TYPE, {})
            envelope.sign(CryptoSigner(key))
            _add(archive, ENVELOPE, json.dumps(envelope.to_dict(), indent=1).encode())
            _add(archive, KEY, public_pem(key))
        temporary.replace(path)
    except OSError as error:
        raise MlereduxError(f"{path} can't be written: {error.strerror or error}.") from error
    finally:
        temporary.unlink(missing_ok=True)
    return statement


def _add_run(archive: zipfile.ZipFile, run: Run, *, submissions: bool) -> list[dict[str, Any]]:
    """Add the files of a run; return the subjects of the statement.

    Raises:
        MlereduxError: A document of the run is damaged, or its submission is too large.
    """
    files, documents = [], {"run.json": run.spec, "report.json": run.report, "scores.json": run.scores}
    for name in documents:  # if one were damaged, the line above would have raised an error
        if (run.path / name).is_file():
            content = (run.path / name).read_bytes()
            _add(archive, f"runs/{run.id}/{name}", content)
            files.append(_subject(f"runs/{run.id}/{name}", hashlib.sha256(content).hexdigest()))
    versions = run.submissions()
    if versions:
        last = versions[-1].path
        name, hashed = f"runs/{run.id}/{last.name}", hashlib.sha256()
        with open_below(run.path, str(last.relative_to(run.path))) as file:
            if os.fstat(file.fileno()).st_size > _LARGEST:
                raise MlereduxError(f"{last} is larger than {_LARGEST >> 30} GiB.", hint="Delete the run.")
            member = archive.open(zipfile.ZipInfo(name, _DATE), "w", force_zip64=True) if submissions else None
            with member or nullcontext():
                while piece := file.read(_PIECE):
                    hashed.update(piece)
                    if member:
                        member.write(piece)
        files.append(_subject(name, hashed.hexdigest()))
    return files


def _described(run: Run, subjects: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the part of the predicate for a run."""
    report = run.report
    submission = next((each for each in subjects if not each["name"].endswith(".json")), None)
    return {
        **{name: value for name, value in run.record().items() if name not in ("path", "report")},
        "submission": submission,
        "limits": run.spec.limits.model_dump(mode="json"),
        "used": run.use.model_dump(mode="json"),
        "report": report.model_dump(mode="json") if report else None,
    }


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    archive.writestr(zipfile.ZipInfo(name, _DATE), content, zipfile.ZIP_DEFLATED)


def _subject(name: str, sha256: str) -> dict[str, Any]:
    return {"name": name, "digest": {"sha256": sha256}}
