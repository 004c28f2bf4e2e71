"""Encryption of the secrets of users and projects."""

from __future__ import annotations

import base64
import os
from contextlib import suppress

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from mleredux.plugin.task import installation_salt

from mleredux_server.protocol.problems import Problem

KEY_VARIABLE = "MLEREDUX_SECRETS_KEY"
_NONCE = 12
_PURPOSE = b"mleredux secrets of users and projects"


class Vault:
    """Encrypts with AES-GCM, using a key derived from MLEREDUX_SECRETS_KEY, else from the installation's salt.

    If there are several keys, separated by spaces, the first one encrypts and all of them decrypt. A former key `salt`
    stands for the installation's salt.
    """

    def __init__(self) -> None:
        text = os.environ.get(KEY_VARIABLE, "")
        first, *former = text.split() or [""]
        keys = [first.encode() or installation_salt()]
        keys += [installation_salt() if word == "salt" else word.encode() for word in former]
        if first and first != text:  # a single key with spaces, from an earlier version
            keys.append(text.encode())
        self._ciphers = [AESGCM(HKDF(SHA256(), 32, None, _PURPOSE).derive(key)) for key in keys]

    def lock(self, place: str, value: str) -> str:
        """Encrypt a value.

        Args:
            place: The purpose of the value, without which it can't be decrypted.
            value: The secret.
        """
        nonce = os.urandom(_NONCE)
        return base64.b64encode(nonce + self._ciphers[0].encrypt(nonce, value.encode(), place.encode())).decode()

    def open(self, place: str, locked: str) -> str:
        """Decrypt a value.

        Raises:
            Problem: The value was encrypted with another key.
        """
        data = base64.b64decode(locked)
        for cipher in self._ciphers:
            with suppress(InvalidTag):
                return cipher.decrypt(data[:_NONCE], data[_NONCE:], place.encode()).decode()
        hint = f"Set it again, or start the server with the former {KEY_VARIABLE} or salt file."
        raise Problem("conflict", f"{place.split(':')[-1]} was encrypted with another key.", hint=hint)

    def renew(self, place: str, locked: str) -> str:
        """Encrypt a value with the first key.

        Raises:
            Problem: The value was encrypted with an unknown key.
        """
        return self.lock(place, self.open(place, locked))
