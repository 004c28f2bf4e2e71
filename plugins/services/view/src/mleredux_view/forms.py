"""Forms that a browser sends: their fields, and files that they upload."""

from __future__ import annotations

import re
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import IO
from urllib.parse import parse_qs

from multipart import MultipartSegment, PushMultipartParser, parse_options_header
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

_BYTES = 1 << 20
"""Of all fields."""
_PARTS = 2_000


class TooLarge(Exception):
    """The fields have too many bytes, or there are too many."""


async def read_form(request: Request, stack: AsyncExitStack) -> tuple[dict[str, list[str]], dict[str, Path]]:
    """Return the fields of a form with their values, and those with a file; its files exist until the stack is closed.

    Raises:
        TooLarge: Its fields are too large.
        MultipartError: It is malformed.
    """
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    if kind == "multipart/form-data":
        return await _parts(request, options.get("boundary", ""), stack)
    body = b""
    async for piece in request.stream():
        if len(body := body + piece) > _BYTES:
            raise TooLarge
    return parse_qs(body.decode("utf-8", "replace")), {}


async def _parts(
    request: Request, boundary: str, stack: AsyncExitStack
) -> tuple[dict[str, list[str]], dict[str, Path]]:
    parser = PushMultipartParser(boundary.encode())
    fields, files = dict[str, list[str]](), dict[str, Path]()
    file: IO[bytes] | None = None
    name, text, size, parts = "", bytearray(), 0, 0
    async for piece in request.stream():
        for event in parser.parse(piece):
            if isinstance(event, MultipartSegment):
                parts += 1
                name, text, file = event.name, bytearray(), None
                if parts > _PARTS:
                    raise TooLarge
                if event.filename:
                    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mleredux-upload-")))
                    files[name] = folder / (re.sub(r"[^\w.-]+", "-", event.filename)[-100:].lstrip(".-") or "file")
                    file = stack.enter_context(files[name].open("wb"))
            elif event is None:
                if file is not None:
                    file.close()
                else:
                    fields.setdefault(name, []).append(text.decode("utf-8", "replace"))
            elif file is not None:
                await run_in_threadpool(file.write, event)
            elif (size := size + len(event)) > _BYTES:
                raise TooLarge
            else:
                text += event
    for _ in parser.parse(b""):  # says if the end is missing
        pass
    return fields, files
