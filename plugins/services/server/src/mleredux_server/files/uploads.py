"""Receive a file, streamed to disk as it arrives, with a limit on the complete upload."""

from __future__ import annotations

import hashlib
import secrets
import shutil
import threading
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import anyio
from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from mleredux.plugin.files import remove_tree
from multipart import MultipartError, MultipartSegment, PushMultipartParser, parse_options_header
from starlette.requests import ClientDisconnect

from mleredux_server.accounts.security import Caller
from mleredux_server.protocol.problems import Problem
from mleredux_server.service import Service

_PROJECT = {"type": "string", "description": "Id or name; your own by default."}


def form(file: str, *required: str, **fields: str) -> dict[str, Any]:
    """Return the OpenAPI schema of an upload: a file, a project, and further fields with their descriptions."""
    texts = {name: {"type": "string", "description": text} for name, text in fields.items()}
    binary = {"type": "string", "format": "binary", "description": file}
    properties = {**texts, "file": binary, "project": _PROJECT}
    schema = {"type": "object", "required": [*required, "file"], "properties": properties}
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}


_MOST_PARTS = 16
_MOST_TEXT = 4096
_BESIDES = 128 << 10
"""Maximum bytes of a form besides its file."""
_AT_ONCE = 256 << 10
_IDLE_SECONDS = 60.0
_MOST_OF_ONE = 8
_FOLDER = "uploads"
_beginning = threading.Lock()


@dataclass
class Upload:
    """A form with one file.

    Attributes:
        path: The file on the server's disk; deleted after the request unless it was moved.
        size: Size in bytes.
        sha256: SHA-256 of the file.
        fields: The form's other parts.
    """

    path: Path
    size: int = 0
    sha256: str = ""
    fields: dict[str, str] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """Return a required field.

        Raises:
            Problem: The field is missing.
        """
        value = self.fields.get(name, "")
        if not value or not value.isprintable():
            raise _invalid_part(name, "is missing" if not value else "has characters that can't be printed")
        return value


class _Form:
    """Stores the parts of a form as they arrive; all limits are enforced here and in the parser."""

    def __init__(self, upload: Upload, boundary: bytes, most: int) -> None:
        self._upload, self._most = upload, most
        self._parser = PushMultipartParser(boundary)
        self._hash = hashlib.sha256()
        self._file: IO[bytes] | None = None
        self._has_file = False
        self._parts = 0
        self._name = ""
        self._text = bytearray()

    def add(self, data: bytes) -> None:
        """Parse the next bytes of the body; empty at its end.

        Raises:
            MultipartError: The body is malformed or incomplete.
            Problem: A part is not allowed or too large, or there are too many.
        """
        for event in self._parser.parse(data):
            if isinstance(event, MultipartSegment):
                self._begin(event.name)
            elif event is None:
                self._end()
            else:
                self._store(event)
        if not data and not self._has_file:
            raise _invalid_part("file", "is missing")

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _begin(self, name: str) -> None:
        self._parts += 1
        if self._parts > _MOST_PARTS:
            raise Problem("too-large", f"The form has more than {_MOST_PARTS} parts.")
        self._name = name
        self._text.clear()
        if name == "file":
            if self._has_file:
                raise _invalid_part("file", "appears twice")
            self._has_file = True
            self._file = self._upload.path.open("xb")

    def _store(self, data: bytes) -> None:
        if self._file is None:
            if len(self._text) + len(data) > _MOST_TEXT:
                raise Problem("too-large", f"A field of the form is larger than {_MOST_TEXT} bytes.")
            self._text += data
            return
        self._upload.size += len(data)
        if self._upload.size > self._most:
            raise too_large(self._most)
        self._file.write(data)
        self._hash.update(data)

    def _end(self) -> None:
        if self._file is not None:
            self.close()
            self._upload.sha256 = self._hash.hexdigest()
        elif self._name:
            self._upload.fields[self._name] = self._text.decode("utf-8", "replace").strip()


@asynccontextmanager
async def received(request: Request, service: Service, caller: Caller, most: int) -> AsyncIterator[Upload]:
    """Receive a form with one file; the file is removed at the end unless it was moved.

    Args:
        request: The request, whose body is the form.
        service: The service that stores it.
        caller: The uploading user.
        most: Maximum size of the file in bytes.

    Raises:
        Problem: It is not a valid form, is too large, or breaks off.
    """
    boundary = _boundary(request)
    announced = request.headers.get("content-length", "")
    expected = int(announced) if announced.isascii() and announced.isdecimal() and len(announced) < 20 else 0
    if expected > most + _BESIDES:
        raise too_large(most)
    folder = await run_in_threadpool(_folder, request, service, expected)
    busy: Counter[str] = request.app.state.uploading
    if busy[caller.user_id] >= _MOST_OF_ONE:
        raise Problem(
            "too-many-requests", f"You are uploading {_MOST_OF_ONE} files already.", headers={"Retry-After": "5"}
        )
    busy[caller.user_id] += 1
    upload = Upload(folder / secrets.token_hex(12))
    form = _Form(upload, boundary, most)
    try:
        await _read(request, form, most)
        yield upload
    finally:
        busy[caller.user_id] -= 1
        form.close()
        upload.path.unlink(missing_ok=True)


async def _read(request: Request, form: _Form, most: int) -> None:
    stream = request.stream()
    waiting, total = bytearray(), 0
    try:
        while True:
            with anyio.fail_after(_IDLE_SECONDS):
                chunk = await anext(stream, None)
            waiting += chunk or b""
            total += len(chunk or b"")
            if total > most + _BESIDES:
                raise too_large(most)
            if waiting and (chunk is None or len(waiting) >= _AT_ONCE):
                await run_in_threadpool(form.add, bytes(waiting))
                waiting.clear()
            if chunk is None:
                form.add(b"")
                return
    except MultipartError as error:
        hint = "Send all of it as multipart/form-data."
        raise Problem("invalid", "The form is malformed or incomplete.", hint=hint) from error
    except (ClientDisconnect, TimeoutError) as error:
        raise Problem("invalid", "The upload was interrupted.", hint="Send it again.") from error


def _boundary(request: Request) -> bytes:
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    boundary: bytes = options.get("boundary", "").encode("latin-1", "replace")
    if kind.lower() != "multipart/form-data" or not 0 < len(boundary) <= 70:
        hint = "`curl -F task=… -F file=@…` sends one."
        raise Problem("invalid", "The body must be a multipart/form-data form with its boundary.", hint=hint)
    return boundary


def _folder(request: Request, service: Service, expected: int) -> Path:
    """Return the folder that uploads are written to. Files left there by an earlier server are removed."""
    folder = service.settings.state_dir / _FOLDER
    state = request.app.state
    with _beginning:  # otherwise, one of two concurrent first uploads would remove the other's folder
        if not hasattr(state, "uploading"):
            remove_tree(folder)
            state.uploading = Counter()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    free = shutil.disk_usage(folder).free >> 20
    if free < service.settings.min_free_mb + (expected >> 20):
        hint = "Contact the server administrator."
        raise Problem("no-space", "The server's disk has too little free space.", hint=hint)
    return folder


def too_large(most: int) -> Problem:
    """Return the error for a file that exceeds the limit."""
    return Problem("too-large", f"The file is larger than {most >> 20} MB.", hint="Send a smaller file.")


def _invalid_part(name: str, what: str) -> Problem:
    hint = "Send `task` and `file`."
    return Problem("invalid", f"The form's part `{name}` {what}.", hint=hint, errors=[{"field": name, "message": what}])
