"""Forms sent by browsers: their fields and uploaded files."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from html import escape, unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import IO
from urllib.parse import parse_qs

from multipart import MultipartSegment, PushMultipartParser, parse_options_header
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

_BYTES = 1 << 20
"""Maximum total bytes of fields."""
_PARTS = 2_000
MAX_FILES_BYTES = 2 << 30
"""Maximum total bytes of uploaded files."""


class TooLarge(Exception):
    """The form has too many bytes, in fields or in files, or too many fields."""


async def read_form(request: Request, stack: AsyncExitStack) -> tuple[dict[str, list[str]], dict[str, Path]]:
    """Return the fields of a form with their values, and its files by field; the files exist until the stack is closed.

    Raises:
        TooLarge: The fields or the files are too large; nothing is read if the declared length is.
        MultipartError: The form is malformed.
    """
    if int(request.headers.get("content-length", 0)) > MAX_FILES_BYTES + _BYTES:
        raise TooLarge
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
    name, text, size, stored, parts = "", bytearray(), 0, 0, 0
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
                if (stored := stored + len(event)) > MAX_FILES_BYTES:
                    raise TooLarge
                await run_in_threadpool(file.write, event)
            elif (size := size + len(event)) > _BYTES:
                raise TooLarge
            else:
                text += event
    for _ in parser.parse(b""):  # raises an error if the end is missing
        pass
    return fields, files


def refilled(page: str, action: str, typed: Mapping[str, Sequence[str]]) -> str:
    """Return a page whose form with this action is filled with the values that were entered, except secrets and
    files."""
    fields = _Fields(page).fields
    own = {field.form for field in fields if action in (field.attrs.get("action"), field.attrs.get("formaction"))}
    parts, end = list[str](), 0
    for field in (element for element in fields if element.form in own and element.name in typed):
        values, kind = typed[field.name], field.attrs.get("type", "text")
        mark = "selected" if field.tag == "option" else "checked"
        if field.tag == "option" or kind in ("checkbox", "radio"):
            field.attrs.pop(mark, None)
            field.attrs |= {mark: mark} if (field.attrs.get("value") or field.text.strip()) in values else {}
        elif field.tag == "textarea":
            field.text = f"\n{values[-1]}"  # browsers drop the first line break
        elif field.tag == "input" and kind not in ("hidden", "password", "file"):
            field.attrs["value"] = values[-1]
        else:
            continue
        tag = " ".join([field.tag, *(f'{name}="{escape(value or "")}"' for name, value in field.attrs.items())])
        parts += [page[end : field.start], f"<{tag}>", escape(field.text)]
        end = field.end
    return "".join(parts) + page[end:]


@dataclass
class _Field:
    """An element of a form, identified by its id or its number; it ends before its end tag."""

    tag: str
    name: str
    attrs: dict[str, str | None]
    form: str
    start: int
    end: int
    text: str = ""


class _Fields(HTMLParser):
    """A parser for the form elements of a page; options are stored with the names of their lists."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.fields = list[_Field]()
        self._page, self._form, self._list = page, "", ""
        self._starts = [0, *(newline.end() for newline in re.finditer("\n", page))]
        self._open: _Field | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes, start = dict(attrs), self._at()
        name = attributes.get("name") or ""
        if tag == "form":
            self._form = attributes.get("id") or str(start)
        elif tag == "select":
            self._list = name
        if tag in ("form", "input", "textarea", "option", "button"):
            form, end = attributes.get("form") or self._form, start + len(self.get_starttag_text() or "")
            self.fields.append(_Field(tag, self._list if tag == "option" else name, attributes, form, start, end))
            self._open = self.fields[-1]

    def handle_endtag(self, tag: str) -> None:
        if self._open is not None and self._open.tag == tag in ("textarea", "option"):
            self._open.text, self._open.end = unescape(self._page[self._open.end : self._at()]), self._at()

    def _at(self) -> int:
        line, column = self.getpos()
        return self._starts[line - 1] + column
