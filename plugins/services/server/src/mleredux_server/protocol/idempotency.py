"""`Idempotency-Key`: if a creating request is repeated, it gets the first response again and creates nothing.

A key's row is created in the same transaction as the requested rows, and gets the response in the transaction that
acknowledges them. So a kill at any moment leaves nothing that a repeated request would create twice.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from dataclasses import dataclass
from datetime import timedelta

from fastapi import FastAPI, Request, Response
from pydantic import BaseModel
from sqlalchemy import delete, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from mleredux_server.accounts.security import Caller
from mleredux_server.database import Database
from mleredux_server.database.tables import Idempotency, now
from mleredux_server.protocol.problems import Problem

HEADER = "Idempotency-Key"
KEPT = timedelta(hours=48)
ABANDONED_AFTER = timedelta(minutes=15)
"""After this time, a first request without a response is considered dead."""
_LONGEST_KEY = 255
_PLAIN_BODY = 32_768
_PACKED = "zlib:"


@dataclass(frozen=True)
class Answer:
    """A response that can be sent again.

    Attributes:
        headers: Its headers `Location` and `ETag`.
        body: The JSON body.
    """

    status: int
    headers: dict[str, str]
    body: str

    def response(self, *, replayed: bool = False) -> Response:
        """Return it as a response."""
        more = {"Idempotency-Replayed": "true"} if replayed else {}
        return Response(self.body, self.status, {**self.headers, **more}, media_type="application/json")


class Replayed(Exception):
    """Raised with the first response to a repeated request; not an error."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.status)
        self.answer = answer


@dataclass(frozen=True)
class Claim:
    """The key of a creating request; without one, nothing is claimed.

    Attributes:
        key: The key; empty if the request has none.
        request: Hash of method, path and the request's content.
    """

    user_id: str
    key: str
    request: str

    def check(self, session: Session) -> bool:
        """Check whether the request is new.

        Raises:
            Replayed: The request is a repeat; the exception contains the first response.
            Problem: The first one is still in progress, or had different content.
        """
        row = session.get(Idempotency, (self.user_id, self.key), populate_existing=True) if self.key else None
        if row is None:
            return True
        if row.request != self.request:
            raise Problem(
                "idempotency-mismatch",
                "The Idempotency-Key was already used for another request.",
                hint="Use a new key for each new request.",
            )
        if row.status is not None:
            raise Replayed(Answer(row.status, dict(row.headers or {}), _unpacked(row.body or "")))
        if now() - row.created_at < ABANDONED_AFTER:
            raise _in_progress()
        return False

    def take(self, session: Session) -> None:
        """Mark the key as used, in the transaction that creates what was requested.

        Raises:
            Replayed: The request is a repeat.
            Problem: The first one is still in progress, or had different content.
        """
        if not self.key:
            return
        if not self.check(session):
            self.release(session)
        session.execute(delete(Idempotency).where(Idempotency.created_at < now() - KEPT))
        session.add(Idempotency(user_id=self.user_id, key=self.key, request=self.request))
        try:
            session.flush()
        except IntegrityError as error:
            raise _in_progress() from error

    def keep(self, session: Session, answer: Answer) -> None:
        """Store the response, in the transaction that acknowledges what was created."""
        session.execute(
            update(Idempotency)
            .where(Idempotency.user_id == self.user_id, Idempotency.key == self.key)
            .values(status=answer.status, headers=answer.headers, body=_packed(answer.body))
        )

    def release(self, session: Session) -> None:
        """Forget the key: nothing was created."""
        session.execute(delete(Idempotency).where(Idempotency.user_id == self.user_id, Idempotency.key == self.key))


UNCLAIMED = Claim("", "", "")
"""The claim of a request without an `Idempotency-Key`."""


def claim_of(request: Request, caller: Caller, *contents: BaseModel | str, first: Database | None = None) -> Claim:
    """Return the claim of a request.

    Args:
        request: The request.
        caller: The requesting user; keys are per user.
        contents: The content that identifies this request: the body's model, or fields and digests of uploads.
        first: If given, a repeat is answered from this database now, before any check whose result may have changed
            since the first request.

    Raises:
        Replayed: The request is a repeat.
        Problem: The key is malformed, or the first request is still in progress, or had different content.
    """
    key = request.headers.get(HEADER)
    if key is None:
        return UNCLAIMED
    if not 0 < len(key) <= _LONGEST_KEY or not key.isascii() or not key.isprintable():
        raise Problem("invalid", f"The Idempotency-Key must be 1 to {_LONGEST_KEY} printable ASCII characters.")
    digest = hashlib.sha256(f"{request.method} {request.url.path}".encode())
    for part in contents:
        text = part.model_dump_json() if isinstance(part, BaseModel) else part
        digest.update(b"\0" + text.encode("utf-8", "surrogatepass"))
    claim = Claim(caller.user_id, key, digest.hexdigest())
    if first is not None:
        with first.reading() as session:
            claim.check(session)
    return claim


def install(app: FastAPI) -> None:
    """Make the app replay first responses."""

    async def replay(_request: Request, again: Exception) -> Response:
        assert isinstance(again, Replayed)
        return again.answer.response(replayed=True)

    app.add_exception_handler(Replayed, replay)


def _in_progress() -> Problem:
    return Problem(
        "idempotency-conflict",
        "The first request with this Idempotency-Key is still in progress.",
        hint="Send the request again in a moment.",
        headers={"Retry-After": "1"},
    )


def _packed(body: str) -> str:
    """Compress a body: long bodies are lists of similar items."""
    if len(body) <= _PLAIN_BODY:
        return body
    return _PACKED + base64.b85encode(zlib.compress(body.encode(), 6)).decode()


def _unpacked(kept: str) -> str:
    if not kept.startswith(_PACKED):
        return kept
    return zlib.decompress(base64.b85decode(kept.removeprefix(_PACKED))).decode()
