"""Names that the service makes: ids, and tokens with their hashes."""

from __future__ import annotations

import hashlib
import secrets

TOKEN_PREFIX = "mlr_"
_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"


def new_id(kind: str) -> str:
    """An id that can't be guessed, with a prefix that says what it is of: `usr_7hk…`."""
    return f"{kind}_" + "".join(secrets.choice(_ALPHABET) for _ in range(20))


def new_token() -> str:
    """A token with 256 bits of chance."""
    return TOKEN_PREFIX + secrets.token_urlsafe(32)


def hash_of(token: str) -> str:
    """What is kept of a token. It has too much chance in it to be guessed from a plain hash."""
    return hashlib.sha256(token.encode()).hexdigest()
