"""Sessions of signed-in users: a random cookie for a token, in memory; a restart signs everyone out."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass, field

from mleredux_server.accounts.identity import hash_of

SECONDS = 12 * 3600.0
_MOST = 10_000


@dataclass(frozen=True)
class Session:
    """A browser that signed in with a token.

    Attributes:
        token: The hash of the token; revoking the token ends the session.
        own: Whether the token was created for the session, and is revoked at its end.
        form_secret: The CSRF token in every form of its pages.
    """

    token: str
    own: bool = False
    form_secret: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    until: float = field(default_factory=lambda: time.monotonic() + SECONDS)


class Sessions:
    """The sessions of a server, by the hash of their cookies."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Session] = OrderedDict()

    def begin(self, token_hash: str, *, own: bool = False) -> str:
        """Begin a session; return the value of its cookie."""
        cookie = secrets.token_urlsafe(32)
        self._known[hash_of(cookie)] = Session(token_hash, own)
        while len(self._known) > _MOST:
            self._known.popitem(last=False)
        return cookie

    def find(self, cookie: str) -> Session | None:
        """Return the session of a cookie, unless it has expired."""
        session = self._known.get(hash_of(cookie))
        return session if session is not None and time.monotonic() < session.until else None

    def end(self, cookie: str) -> None:
        """End a session."""
        self._known.pop(hash_of(cookie), None)
