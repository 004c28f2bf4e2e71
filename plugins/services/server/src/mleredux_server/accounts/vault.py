"""Encryption of the secrets of users and projects."""

from __future__ import annotations

import base64
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from mleredux.plugin.task import installation_salt

from mleredux_server.protocol.problems import Problem

KEY_VARIABLE = "MLEREDUX_SECRETS_KEY"
_NONCE = 12


class Vault:
    """Encrypts with AES-GCM, by a key derived from MLEREDUX_SECRETS_KEY, else from the installation's salt."""

    def __init__(self) -> None:
        given = os.environ.get(KEY_VARIABLE, "").encode() or installation_salt()
        key = HKDF(SHA256(), 32, None, b"mleredux secrets of users and projects").derive(given)
        self._cipher = AESGCM(key)

    def lock(self, place: str, value: str) -> str:
        """Encrypt a value.

        Args:
            place: What it is; the result is valid nowhere else.
            value: The secret.
        """
        nonce = os.urandom(_NONCE)
        return base64.b64encode(nonce + self._cipher.encrypt(nonce, value.encode(), place.encode())).decode()

    def open(self, place: str, locked: str) -> str:
        """Decrypt a value.

        Raises:
            Problem: It was encrypted with another key.
        """
        data = base64.b64decode(locked)
        try:
            return self._cipher.decrypt(data[:_NONCE], data[_NONCE:], place.encode()).decode()
        except InvalidTag:
            hint = f"Set it again, or start the server with the former {KEY_VARIABLE} or salt file."
            raise Problem("conflict", f"{place.split(':')[-1]} was encrypted with another key.", hint=hint) from None
