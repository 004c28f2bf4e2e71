"""Resumable download of one large file: no byte is fetched twice, and a partial file is never treated as complete."""

from __future__ import annotations

import base64
import errno
import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests

from mleredux_competition_mlebench.kaggle.patience import TROUBLE, Patience, Refusal, retry_after

_BLOCK = 1 << 20

Ask = Callable[[], requests.Response]
"""Requests the file and returns a response that streams it from its first byte."""
Progress = Callable[[int, int | None], None]


class _Unfinished(Exception):
    """The file is not complete yet; `requested` is the pause that the server requests."""

    def __init__(self, requested: float | None = None) -> None:
        super().__init__(requested)
        self.requested = requested


@dataclass
class Download:
    """One file download.

    The bytes so far are in `<target>.part`, with a file next to it that records their version (the server's ETag or
    modification time, and the size), so that only bytes of the same version are joined.

    Attributes:
        ask: Requests the file; may be called again when a URL has expired.
        target: The path of the complete file.
        progress: Called with the bytes done and the total.
        md5: MD5 reported by the storage, in hexadecimal, if any.
    """

    ask: Ask
    target: Path
    patience: Patience = field(default_factory=Patience)
    progress: Progress = lambda _done, _total: None
    md5: str | None = None

    @property
    def part(self) -> Path:
        """The file with the bytes so far."""
        return self.target.with_name(self.target.name + ".part")

    @property
    def marker(self) -> Path:
        """The file that records the version of the bytes."""
        return self.target.with_name(self.target.name + ".part.json")

    def run(self) -> None:
        """Download, in as many pieces as necessary.

        Raises:
            Refusal: The file is not available, does not fit on the disk, or its download is repeatedly interrupted.
        """
        failures, farthest = 0, self._size()
        while True:
            requested = None
            try:
                return self._continue(self.patience.ask(self.ask))
            except _Unfinished as pause:
                requested = pause.requested
            except TROUBLE:
                pass  # keep the received bytes
            except OSError as error:
                if error.errno in (errno.ENOSPC, errno.EDQUOT):
                    raise Refusal("no-room", folder=str(self.target.parent)) from error
                raise Refusal(
                    "unwritable", folder=str(self.target.parent), reason=error.strerror or type(error).__name__
                ) from error
            progressed, farthest = self._size() > farthest, max(farthest, self._size())
            failures = 1 if progressed else failures + 1
            if failures >= self.patience.tries:
                raise Refusal(
                    "broken-off", tries=failures, done=self._size(), total=self._marked().get("total") or "unknown"
                )
            self.patience.pause(failures, requested)

    def _size(self) -> int:
        try:
            return self.part.stat().st_size
        except FileNotFoundError:
            return 0

    def _marked(self) -> dict[str, Any]:
        try:
            marked = json.loads(self.marker.read_bytes())
        except (OSError, ValueError):
            return {}
        return marked if isinstance(marked, dict) else {}

    def _continue(self, response: requests.Response) -> None:
        """Append a response's bytes, or only the missing ones.

        Raises:
            _Unfinished: The file is still incomplete.
        """
        with response:
            identity, total = _identity(response), _length(response)
            known = identity is not None and self._marked() == {"identity": identity, "total": total}
            start = self._size() if known else 0
            self.md5 = _reported_md5(response) or self.md5
            if not start or (total is not None and start > total):
                return self._take_all(response)
            if start == total:
                return self._finish()
            rest = _again(response, start, str(identity))
        with rest:
            if rest.status_code == requests.codes.partial_content and _starts_at(rest) == start:
                return self._take(rest, start, total)
            if rest.status_code == requests.codes.ok:  # the server can't send ranges, or now has another version
                return self._take_all(rest)
            if rest.status_code == requests.codes.requested_range_not_satisfiable:
                self.part.unlink(missing_ok=True)
            raise _Unfinished(retry_after(rest))

    def _take_all(self, response: requests.Response) -> None:
        self.part.unlink(missing_ok=True)
        self.marker.write_text(json.dumps({"identity": _identity(response), "total": _length(response)}))
        self._take(response, 0, _length(response))

    def _take(self, response: requests.Response, done: int, total: int | None) -> None:
        with self.part.open("ab") as file:
            self.progress(done, total)
            for block in _blocks(response):
                file.write(block)
                file.flush()
                done += len(block)
                self.progress(done, total)
        if total is not None and done < total:
            raise _Unfinished
        self._finish()

    def _finish(self) -> None:
        with self.part.open("rb") as file:
            os.fsync(file.fileno())
        self.part.replace(self.target)
        self.marker.unlink(missing_ok=True)


def _blocks(response: requests.Response) -> Iterator[bytes]:
    """Yield the body as received; no received bytes are lost if the connection breaks."""
    read1 = getattr(response.raw, "read1", None)
    if read1 is None or _length(response) is None:
        yield from response.iter_content(_BLOCK)
        return
    while block := read1(_BLOCK):
        yield block


def _identity(response: requests.Response) -> str | None:
    etag = response.headers.get("ETag")
    if etag and not etag.startswith("W/"):
        return etag
    return response.headers.get("Last-Modified")


def _length(response: requests.Response) -> int | None:
    """Return the number of bytes to be written from the body; None if it is not known in advance."""
    if response.headers.get("Content-Encoding", "identity") != "identity":
        return None
    length = response.headers.get("Content-Length", "")
    return int(length) if length.isdigit() else None


def _reported_md5(response: requests.Response) -> str | None:
    """Return the MD5 of the complete file from the header of Google's storage, `x-goog-hash: crc32c=…,md5=<base64>`."""
    match = re.search(r"md5=([A-Za-z0-9+/]{22}==)", response.headers.get("x-goog-hash", ""))
    return base64.b64decode(match.group(1)).hex() if match else None


def _starts_at(response: requests.Response) -> int | None:
    match = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    return int(match.group(1)) if match else None


def _again(response: requests.Response, start: int, identity: str) -> requests.Response:
    """Repeat a request at its redirected URL, starting from a byte; `If-Range` restarts it if the version changed."""
    request = response.request.copy()
    request.headers["Range"] = f"bytes={start}-"
    request.headers["If-Range"] = identity
    request.headers["Accept-Encoding"] = "identity"
    with requests.Session() as session:
        settings = session.merge_environment_settings(request.url, {}, True, None, None)
        return session.send(request, allow_redirects=True, **settings)
