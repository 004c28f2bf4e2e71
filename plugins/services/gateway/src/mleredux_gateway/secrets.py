"""The run's own token, and keeping secrets out of what is kept."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable

MASK = "*****"
_SHORTEST = 6


def run_token(salt: bytes, run_id: str) -> str:
    """The key by which a run's agent is known: the same when the run goes on, and nobody else's.

    HMAC-SHA256 of the run's id with the installation's salt (RFC 2104).
    """
    return "sk-mleredux-" + hmac.new(salt, b"gateway\0" + run_id.encode(), hashlib.sha256).hexdigest()[:48]


class Mask:
    """Replaces secrets in texts, as they are and as they are written in JSON. Shorter ones than six characters stay."""

    def __init__(self, secrets: Iterable[str]) -> None:
        long_enough = {secret for secret in secrets if len(secret) >= _SHORTEST}
        forms = {form for secret in long_enough for form in (secret, json.dumps(secret)[1:-1])}
        self._texts = sorted(forms, key=len, reverse=True)
        self._bytes = [form.encode() for form in self._texts]

    def text(self, value: str) -> str:
        """The text without them."""
        for secret in self._texts:
            value = value.replace(secret, MASK)
        return value

    def data(self, value: bytes) -> bytes:
        """The bytes without them."""
        for secret in self._bytes:
            value = value.replace(secret, MASK.encode())
        return value
