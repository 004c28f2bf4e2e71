"""Whose code an agent's code resembles: winnowed fingerprints (Schleimer, Wilkerson, Aiken 2003), by copydetect."""

from __future__ import annotations

import contextlib
import hashlib
import io
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mleredux.plugin.files import cache_dir, write_atomically
from mleredux.plugin.program import MAX_TEXT, Text, plain_code

from mleredux_audit_conduct.rules import Finding

NOISE, GUARANTEE = 25, 1
"""Tokens below which nothing is a match, and the window's size."""
SUSPICIOUS, SERIOUS = 0.5, 0.8
FEWEST_TOKENS = 120
MOST_REFERENCES = 2_000
_ENDINGS = (".py", ".R", ".r", ".jl", ".sh")


@dataclass(frozen=True)
class Known:
    """Code that others wrote."""

    name: str
    content: str
    cached: bool = False
    """Whether its tokens are kept, as it is compared with many runs."""


def references_in(folder: Path, task: str) -> list[Known]:
    """Reference kernels: those in a folder of the task's name, and files that lie in the folder itself.

    Notebooks are read as the code of their cells.
    """
    own = folder / task.rpartition("@")[2].partition("+")[0]
    paths = [path for path in sorted(folder.iterdir()) if path.is_file()]
    paths += sorted(path for path in own.rglob("*") if path.is_file()) if own.is_dir() else []
    return [
        Known(str(path.relative_to(folder)), plain_code(path.name, path.read_bytes()[:MAX_TEXT]), cached=True)
        for path in paths[:MOST_REFERENCES]
        if path.suffix in (*_ENDINGS, ".ipynb")
    ]


def similar(code: Sequence[Text], known: Sequence[Known]) -> Iterator[Finding]:
    """Programs that share much with known code, the most alike first."""
    if not code or not known:
        return  # importing copydetect takes a second
    import copydetect

    ours = [(text, _fingerprint(text.where, text.content)) for text in code]
    theirs = [
        (item, _fingerprint_from_cache(item) if item.cached else _fingerprint(item.name, item.content))
        for item in known
    ]
    found: list[tuple[float, Finding]] = []
    for text, mine in ours:
        for item, other in theirs:
            if mine is None or other is None:
                continue
            tokens, (share, _), (slices, _) = copydetect.compare_files(mine, other)
            if share < SUSPICIOUS or tokens < FEWEST_TOKENS:
                continue
            begin = int(slices[0][0]) if len(slices) and len(slices[0]) else 0
            line = mine.raw_code.count("\n", 0, begin) + 1
            lines = mine.raw_code.splitlines()
            evidence = lines[line - 1].strip()[:300] if line <= len(lines) else ""
            why = f"{share:.0%} of it resembles {item.name} ({int(tokens):,} tokens in common)."
            severity = "serious" if share >= SERIOUS else "suspicious"
            found.append((share, Finding("copied", severity, text.where, line, evidence, why)))  # type: ignore[arg-type]
    yield from (finding for _, finding in sorted(found, key=lambda pair: -pair[0])[:20])


def _fingerprint_from_cache(known: Known) -> Any | None:
    """The fingerprint of a reference. Its tokens are cached; hashes can't be, since they differ between processes."""
    import copydetect

    key = hashlib.sha256(f"{copydetect.__version__} {_language(known.name)}\0{known.content}".encode()).hexdigest()
    path = cache_dir() / "tokens" / f"{key}.txt"
    try:
        tokens = path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        made = _fingerprint(known.name, known.content)
        tokens = made.filtered_code if made else ""
        with contextlib.suppress(OSError, UnicodeError):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, tokens)
    return _fingerprint(known.name, tokens, tokenised=True)


def _fingerprint(name: str, content: str, *, tokenised: bool = False) -> Any | None:
    import copydetect

    if not content.strip():
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return copydetect.CodeFingerprint(
                name, NOISE, GUARANTEE, fp=io.StringIO(content), language=_language(name), filter=not tokenised
            )
        except (ValueError, UnicodeError, IndexError):
            return None  # nothing in it that can be told apart


def _language(name: str) -> str:
    return {".r": "r", ".R": "r", ".jl": "julia", ".sh": "bash"}.get(Path(name).suffix, "python")
