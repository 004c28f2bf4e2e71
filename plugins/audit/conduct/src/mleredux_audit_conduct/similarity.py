"""Code similarity by winnowed fingerprints (Schleimer, Wilkerson, Aiken 2003), computed by copydetect."""

from __future__ import annotations

import contextlib
import hashlib
import io
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from mleredux.errors import MlereduxError
from mleredux.models.formats import counted
from mleredux.plugin.artifact import Run, RunSpec, RunStore
from mleredux.plugin.files import cache_dir, write_atomically
from mleredux_rollout import MAX_TEXT, Text, code_of, plain_code

from mleredux_audit_conduct.rules import Finding

NOISE, GUARANTEE = 25, 1
"""Minimum number of tokens of a match, and the window size."""
SUSPICIOUS, SERIOUS = 0.5, 0.8
FEWEST_TOKENS = 120
LONG = 300
"""Minimum number of common tokens that can't be mere boilerplate."""
MOST_REFERENCES = 2_000
OTHER_RUNS = 50
"""Maximum number of runs to compare a run with."""
LOOKED_AT = 500
"""Number of the task's runs among which those to compare with are selected."""
_ENDINGS = (".py", ".R", ".r", ".jl", ".sh")


@dataclass(frozen=True)
class Known:
    """Code by other authors."""

    name: str
    content: str
    cached: bool = False
    """Whether to cache the tokens, because the code is compared with many runs."""


def known_code(run: Run, references: Path | None, *, before: bool = False) -> list[Known]:
    """Return code of other runs and of references that a run's code may derive from.

    Args:
        references: A folder of reference kernels.
        before: Whether to omit later runs, and other versions of the same agent.
    """
    return [*_of_other_runs(run, before), *(references_in(references, run.spec.task) if references else ())]


def _of_other_runs(run: Run, before: bool) -> list[Known]:
    """Return code of the newest other runs of the task and project, by other agents or other versions of this agent."""
    known: list[Known] = []
    newest = islice(RunStore(run.path.parent).newest(run.spec.task), LOOKED_AT)
    for other in islice((other for other in newest if _is_other(other.spec, run.spec, before)), OTHER_RUNS):
        with contextlib.suppress(MlereduxError, OSError):  # deleted in the meantime
            known += [Known(f"{text.where} of run {other.id}", text.content) for text in code_of(other)]
    return known


def _is_other(other: RunSpec, spec: RunSpec, before: bool) -> bool:
    if other.project != spec.project or other.agent == spec.agent or other.agent.startswith("reproduce:"):
        return False
    later = other.created_at > spec.created_at or other.agent.partition("@")[0] == spec.agent.partition("@")[0]
    return not (before and later)


def references_in(folder: Path, task: str) -> list[Known]:
    """Return reference kernels: files in the folder itself and in its subfolder named like the task.

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


def similar(code: Sequence[Text], known: Sequence[Known], *, long: bool = False) -> Iterator[Finding]:
    """Return programs that share much with known code, the most similar first.

    Args:
        long: Whether to require `LONG` common tokens, in which case the share of the known code counts too.
    """
    if not code or not known:
        return  # importing copydetect takes a second
    import copydetect

    ours = [(text, _fingerprint(text.where, text.content)) for text in code]
    theirs = [
        (item, _fingerprint_from_cache(item) if item.cached else _fingerprint(item.name, item.content))
        for item in known
    ]
    matches: list[tuple[float, Finding]] = []
    for text, mine in ours:
        for item, other in theirs:
            if mine is None or other is None:
                continue
            tokens, (own, whole), (slices, _) = copydetect.compare_files(mine, other)
            share = max(own, whole) if long else own
            if share < SUSPICIOUS or tokens < (LONG if long else FEWEST_TOKENS):
                continue
            begin = int(slices[0][0]) if len(slices) and len(slices[0]) else 0
            line = mine.raw_code.count("\n", 0, begin) + 1
            lines = mine.raw_code.splitlines()
            evidence = lines[line - 1].strip()[:300] if line <= len(lines) else ""
            alike = f"{share:.0%} of it resembles" if share == own else f"It contains {share:.0%} of"
            why = f"{alike} {item.name} ({counted(int(tokens), 'token')} in common)."
            severity = "serious" if share >= SERIOUS else "suspicious"
            matches.append((share, Finding("copied", severity, text.where, line, evidence, why)))  # type: ignore[arg-type]
    yield from (finding for _, finding in sorted(matches, key=lambda pair: -pair[0])[:20])


def _fingerprint_from_cache(known: Known) -> Any | None:
    """Return the fingerprint of a reference. Tokens are cached; hashes are not, since they differ between processes."""
    import copydetect

    key = hashlib.sha256(f"{copydetect.__version__} {_language(known.name)}\0{known.content}".encode()).hexdigest()
    path = cache_dir() / "tokens" / f"{key}.txt"
    try:
        tokens = path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        fingerprint = _fingerprint(known.name, known.content)
        tokens = fingerprint.filtered_code if fingerprint else ""
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
        with contextlib.suppress(ValueError, UnicodeError, IndexError):
            return copydetect.CodeFingerprint(
                name, NOISE, GUARANTEE, fp=io.StringIO(content), language=_language(name), filter=not tokenised
            )
        return None  # no distinguishing content


def _language(name: str) -> str:
    return {".r": "r", ".R": "r", ".jl": "julia", ".sh": "bash"}.get(Path(name).suffix, "python")
