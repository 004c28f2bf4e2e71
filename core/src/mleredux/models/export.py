"""The declaration of a format in which runs are exported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Format:
    """A format of another system in which runs can be written.

    Attributes:
        id: Its name: `mleredux export … --to ID`.
        title: What it is, for `mleredux list formats`.
        suffix: The end of the names of its files: `.jsonl`.
        write: `write(runs, options)` yields the content of one file, which holds these `ExportedRun`s, in pieces.
        together: Whether one file holds all runs; otherwise `write` is called with each run alone.
        needs: What a run must have to be exported: `rollout`, `score`, `public` files.
        trusted: Whether tainted and irreproducible results are left out, as of data for training or publication.
        options: The options that `write` gets, with their defaults.
    """

    id: str
    title: str
    suffix: str
    write: Callable[[Sequence[Any], Mapping[str, Any]], Iterable[bytes]]
    together: bool = False
    needs: tuple[str, ...] = ()
    trusted: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
