"""Generated identifiers: ids, and tokens with their hashes."""

from __future__ import annotations

import hashlib
import secrets

SCOPES = ("read", "run", "grade", "tokens", "admin")
TOKEN_PREFIX = "mlr_"
_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"


def new_id(kind: str) -> str:
    """Return an unguessable id with a prefix for its type: `usr_7hk…`."""
    return f"{kind}_" + "".join(secrets.choice(_ALPHABET) for _ in range(20))


def new_token() -> str:
    """Return a token with 256 bits of entropy."""
    return TOKEN_PREFIX + secrets.token_urlsafe(32)


def hash_of(token: str) -> str:
    """Return the stored hash of a token. An unsalted hash suffices, since tokens have too much entropy to be
    guessed."""
    return hashlib.sha256(token.encode()).hexdigest()
