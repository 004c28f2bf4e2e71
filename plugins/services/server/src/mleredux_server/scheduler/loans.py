"""Secrets for runs on an executor, in files of the run's folder that only the run's process can decrypt."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from mleredux.errors import MlereduxError
from mleredux.plugin.files import write_atomically

_REQUEST, _ANSWER = ".borrow-", ".loan-"
_KEY = 32
_NONCE = 12
_POLL = 0.2
_WAIT_SECONDS = 900.0
"""How long a run's process waits for the server, which may be restarting, in seconds."""

Loan = tuple[Mapping[str, str], Iterable[str]]
"""Values by name, and the values that the run received earlier."""


def borrow(folder: Path, nonce: str, *, seconds: float = _WAIT_SECONDS) -> Loan:
    """Request the secrets of a run from the server, with the public half of a key that is generated here and never
    stored.

    Args:
        folder: The run's directory.
        nonce: Nonce of the ticket with which this process was started.
        seconds: How long to wait.

    Raises:
        MlereduxError: No server answered in time, or the answer was changed.
    """
    key = X25519PrivateKey.generate()
    public = key.public_key().public_bytes_raw()
    question, answered = (folder / f"{prefix}{public.hex()}" for prefix in (_REQUEST, _ANSWER))
    write_atomically(question, nonce)
    try:
        end = time.monotonic() + seconds
        while not answered.exists():
            if time.monotonic() > end:
                raise MlereduxError(f"No server sent this run its secrets within {seconds:.0f} seconds.")
            os.scandir(folder).close()  # makes a shared file system show new files
            time.sleep(_POLL)
        data = base64.b64decode(answered.read_bytes())
        theirs = data[:_KEY]
        cipher = _cipher(key.exchange(X25519PublicKey.from_public_bytes(theirs)), theirs + public)
        try:
            plain = cipher.decrypt(data[_KEY:][:_NONCE], data[_KEY + _NONCE :], _place(folder, nonce))
        except InvalidTag:
            raise MlereduxError("The secrets that the server sent this run can't be decrypted.") from None
    finally:
        question.unlink(missing_ok=True)
        answered.unlink(missing_ok=True)
    loan = json.loads(plain)
    return loan["secrets"], loan["earlier"]


def requests(folder: Path, nonce: str) -> list[bytes]:
    """Return the public keys of processes with a ticket that have not been answered yet, one per request."""
    keys = []
    for path in folder.glob(f"{_REQUEST}*"):
        name = path.name.removeprefix(_REQUEST)
        with contextlib.suppress(OSError, ValueError):  # it was removed, or is not a key
            if not (folder / f"{_ANSWER}{name}").exists() and path.read_text() == nonce:
                keys.append(bytes.fromhex(name))
    return keys


def answer(folder: Path, nonce: str, public: bytes, loan: Loan) -> None:
    """Pass secrets to a run, readable only by the process with the private half of a key.

    Raises:
        OSError: The file can't be written.
        ValueError: The key is not valid.
    """
    key = X25519PrivateKey.generate()
    ours, number = key.public_key().public_bytes_raw(), os.urandom(_NONCE)
    plain = json.dumps({"secrets": loan[0], "earlier": list(loan[1])}).encode()
    cipher = _cipher(key.exchange(X25519PublicKey.from_public_bytes(public)), ours + public)
    sealed = cipher.encrypt(number, plain, _place(folder, nonce))
    write_atomically(folder / f"{_ANSWER}{public.hex()}", base64.b64encode(ours + number + sealed))


def forget(folder: Path) -> None:
    """Remove the requests of killed processes."""
    for prefix in (_REQUEST, _ANSWER):
        for path in folder.glob(f"{prefix}*"):
            path.unlink(missing_ok=True)


def _cipher(shared: bytes, keys: bytes) -> AESGCM:
    return AESGCM(HKDF(SHA256(), 32, None, b"mleredux loan of secrets" + keys).derive(shared))


def _place(folder: Path, nonce: str) -> bytes:
    return f"{folder.name}:{nonce}".encode()
