"""The run's own token, and masking of secrets."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable

from mleredux.plugin.files import secret_forms

MASK = "*****"


def run_token(salt: bytes, run_id: str) -> str:
    """Return the key that identifies a run's agent; it is unique to the run, and stays the same if the run is resumed.

    The key is the HMAC-SHA256 of the run's id with the installation's salt (RFC 2104).
    """
    return "sk-mleredux-" + hmac.new(salt, b"gateway\0" + run_id.encode(), hashlib.sha256).hexdigest()[:48]


class Mask:
    """Masks secrets in texts, in all forms known to `mleredux.plugin.files`."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._bytes = secret_forms(secrets)
        self._texts = [form.decode("utf-8", "surrogateescape") for form in self._bytes]

    def text(self, value: str) -> str:
        """Return the text with secrets masked."""
        for secret in self._texts:
            value = value.replace(secret, MASK)
        return value

    def data(self, value: bytes) -> bytes:
        """Return the bytes with secrets masked."""
        for secret in self._bytes:
            value = value.replace(secret, MASK.encode())
        return value
