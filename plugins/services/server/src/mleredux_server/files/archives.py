"""All files of a run in one archive, created while it is sent: without a copy on disk, one block at a time in
memory."""

from __future__ import annotations

import tarfile
import zlib
from collections.abc import AsyncGenerator, Generator, Iterable, Iterator
from contextlib import closing
from functools import partial
from typing import Literal
from zipfile import ZIP_DEFLATED

import anyio
from mleredux.plugin.files import path_of_readable
from zipstream import ZipStream  # type: ignore[import-untyped]

from mleredux_server.files.access import Cover, Opened
from mleredux_server.files.names import archive_name
from mleredux_server.files.responses import PIECE, packers
from mleredux_server.runs.lookup import SeenRun
from mleredux_server.streams.answer import Incomplete

Format = Literal["zip", "tar", "tar.gz"]
MEDIA_TYPES: dict[Format, str] = {"zip": "application/zip", "tar": "application/x-tar", "tar.gz": "application/gzip"}
_BLOCK = 64 << 10
_LEVEL = 1
"""Compression level: it compresses the zeros of sparse files at little cost to the server."""


async def archive(
    run: SeenRun, paths: Iterable[str], form: Format, cover: Cover | None = None
) -> AsyncGenerator[bytes, None]:
    """Generate the bytes of an archive.

    Args:
        run: The run.
        paths: As in a manifest; anything that is not (or no longer) a regular file is skipped.
        form: The archive's format.
        cover: How to read the files, if they may hold secrets.
    """
    files = _files(run, paths, cover)
    making = _zip(files) if form == "zip" else _tar(files)
    whole = _gzip(making) if form == "tar.gz" else making
    with closing(making), closing(whole):
        while piece := await anyio.to_thread.run_sync(partial(_some, whole), limiter=packers()):
            yield piece
        files.close()


def _some(making: Iterator[bytes]) -> bytes:
    """Return about one block of bytes; empty at the end."""
    parts: list[bytes] = []
    size = 0
    for part in making:
        parts.append(part)
        size += len(part)
        if size >= PIECE:
            break
    return b"".join(parts)


def _files(run: SeenRun, paths: Iterable[str], cover: Cover | None) -> Generator[tuple[str, Opened], None, None]:
    """Yield names in the archive and the files, each open until the next is requested."""
    for path in paths:
        where = path_of_readable(path)
        try:
            file = run.open(where, cover) if where is not None else None
        except OSError:
            continue
        if file is not None:
            with file:
                yield archive_name(path), file


def _content(file: Opened) -> Generator[bytes, None, None]:
    """Yield as many bytes as the file had when it was opened, or fewer."""
    offset = 0
    while offset < file.size and (block := file.read(offset, min(_BLOCK, file.size - offset))):
        offset += len(block)
        yield block


def _zip(files: Iterable[tuple[str, Opened]]) -> Generator[bytes, None, None]:
    making = ZipStream(compress_type=ZIP_DEFLATED, compress_level=_LEVEL)
    for name, file in files:
        making.add(_content(file), name, size=file.size)
        yield from making.file()
    yield from making.finalize()


def _tar(files: Iterable[tuple[str, Opened]]) -> Generator[bytes, None, None]:
    total = 0
    for name, file in files:
        about = tarfile.TarInfo(name)
        about.size, about.mtime = file.size, file.modified // 10**9
        header = about.tobuf(tarfile.PAX_FORMAT, "utf-8", "replace")
        yield header
        sent = 0
        for block in _content(file):
            sent += len(block)
            yield block
        if sent < file.size:
            raise Incomplete(f"{name} was truncated while it was sent")
        padding = b"\0" * (-sent % tarfile.BLOCKSIZE)
        yield padding
        total += len(header) + sent + len(padding)
    end = total + 2 * tarfile.BLOCKSIZE
    yield b"\0" * (2 * tarfile.BLOCKSIZE + -end % tarfile.RECORDSIZE)


def _gzip(making: Iterable[bytes]) -> Generator[bytes, None, None]:
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    for part in making:
        if packed := packer.compress(part):
            yield packed
    yield packer.flush()
