"""Several files that a function writes in a single pass through raw data that is too large to read repeatedly."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from mleredux_competition_mlebench.blocks.contents import Content

Writer = Callable[..., None]


@dataclass(eq=False)
class _Pass:
    """The pass, which runs when the first of its files is requested; the others are stored next to it until they are
    requested.
    """

    writer: Writer
    count: int
    waiting: list[Path] = field(default_factory=list)
    folder: tempfile.TemporaryDirectory[str] | None = None
    """Where files are stored if the first one is requested for an archive."""

    def take(self, number: int, target: Path) -> None:
        if not self.waiting:
            self._run(target.parent)
        shutil.move(self.waiting[number], target)
        self._tidy()

    def pour(self, number: int, file: IO[bytes]) -> None:
        if not self.waiting:
            self.folder = tempfile.TemporaryDirectory()
            self._run(Path(self.folder.name))
        with self.waiting[number].open("rb") as content:
            shutil.copyfileobj(content, file, 1 << 20)
        self.waiting[number].unlink()
        self._tidy()

    def _tidy(self) -> None:
        if self.folder is not None and not any(path.exists() for path in self.waiting):
            self.folder.cleanup()

    def _run(self, folder: Path) -> None:
        paths: list[Path] = []
        try:
            with ExitStack() as files:
                streams: list[IO[bytes]] = []
                for _ in range(self.count):
                    handle, name = tempfile.mkstemp(dir=folder, prefix=".part-")
                    paths.append(Path(name))
                    paths[-1].chmod(0o644)  # temporary files are accessible only to their owner
                    streams.append(files.enter_context(os.fdopen(handle, "wb")))
                self.writer(*streams)
        except BaseException:
            for path in paths:
                path.unlink(missing_ok=True)
            raise
        self.waiting = paths


@dataclass(frozen=True)
class _Part(Content):
    """One file of a pass."""

    whole: _Pass
    number: int

    def stream(self, file: IO[bytes]) -> None:
        self.whole.pour(self.number, file)

    def write(self, path: Path) -> None:
        self.whole.take(self.number, path)


def one_pass(writer: Writer, count: int) -> list[Content]:
    """Return contents that are written together; each is registered once, as a separate file.

    Args:
        writer: Called once with `count` open files; writes all of them.
        count: Number of files.
    """
    whole = _Pass(writer, count)
    return [_Part(whole, number) for number in range(count)]
