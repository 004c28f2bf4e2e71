"""The declaration of a format for exporting runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Format:
    """A format of another system that runs can be exported to.

    Attributes:
        id: The name of the format, as in `mleredux export … --to ID`.
        title: A short description for `mleredux list formats`.
        suffix: The suffix of its files, such as `.jsonl`.
        write: `write(runs, options)` yields the content of one file with these `ExportedRun`s, in chunks.
        together: Whether one file holds all runs; otherwise `write` is called once per run.
        needs: Requirements for exporting a run: `rollout`, `score`, `public` files.
        trusted: Whether tainted and irreproducible results are excluded, as they should be from data for training or
            publication.
        options: The options passed to `write`, with their defaults.
    """

    id: str
    title: str
    suffix: str
    write: Callable[[Sequence[Any], Mapping[str, Any]], Iterable[bytes]]
    together: bool = False
    needs: tuple[str, ...] = ()
    trusted: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
