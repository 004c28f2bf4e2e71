"""Masking: each byte of a secret is replaced by `*`, so that everything else in a file keeps its position."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

SHORTEST = 6
"""Minimum number of characters of a secret: shorter values are too common to be replaced."""


def forms(secrets: Iterable[str]) -> list[bytes]:
    """Return spellings of secrets, longest first: plain, and as JSON strings with and without `\\u` escapes."""
    spellings = {
        form.encode("utf-8", "surrogateescape")
        for secret in secrets
        if len(secret) >= SHORTEST
        for form in (secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
    }
    return sorted(spellings, key=lambda form: (-len(form), form))


class Mask:
    """Hides secrets in bytes. Each byte that is part of a secret is hidden, even if two overlap.

    Attributes:
        reach: How many bytes before and after a byte decide whether it is hidden.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = frozenset(secrets)
        self._forms = forms(self._secrets)
        self.reach = max(0, len(self._forms[0]) - 1) if self._forms else 0

    def __bool__(self) -> bool:
        return bool(self._forms)

    def __or__(self, other: Mask) -> Mask:
        """Return a mask that hides the secrets of both."""
        return Mask(self._secrets | other._secrets)

    def finds(self, data: bytes) -> bool:
        """Return whether the bytes contain a whole secret."""
        return any(form in data for form in self._forms)

    def hide(self, data: bytes) -> bytes:
        """Return the bytes with each secret masked; the length stays the same."""
        hidden: bytearray | None = None
        for form in self._forms:
            place = data.find(form)
            while place >= 0:
                hidden = bytearray(data) if hidden is None else hidden
                hidden[place : place + len(form)] = b"*" * len(form)
                place = data.find(form, place + 1)
        return data if hidden is None else bytes(hidden)

    def read(self, source: Callable[[int, int], bytes], offset: int, most: int) -> bytes:
        """Return a part of a file with secrets masked, including those that cross its ends.

        Args:
            source: Called as `source(offset, count)`; returns up to `count` bytes from an offset.
            offset: The offset of the part.
            most: The number of bytes; fewer are returned only at the end of the file.
        """
        before = min(offset, self.reach)
        return self.hide(source(offset - before, before + most + self.reach))[before : before + most]

    def begun(self, data: bytes) -> int:
        """Return the number of bytes at the end that may be the beginning of an incomplete secret."""
        tail = data[-self.reach :] if self.reach else b""
        longest = 0
        for form in self._forms:
            # Try suffixes longer than the best so far, starting with the longest.
            place = tail.find(form[:1], max(0, len(tail) - len(form) + 1))
            while 0 <= place < len(tail) - longest:
                if form.startswith(tail[place:]):
                    longest = len(tail) - place
                    break
                place = tail.find(form[:1], place + 1)
        return longest
