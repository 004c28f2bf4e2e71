"""`solutions.diff`: the changes from each solution to the one derived from it."""

from __future__ import annotations

import difflib

from mleredux.plugin.artifact import Artifact, Run

from mleredux_artifact_notes.solutions import Solution, solutions_of

PATH = "solutions.diff"


def produce_diff(run: Run) -> Artifact | None:
    """Write the diffs; return None if the run has fewer than two solutions."""
    found = solutions_of(run)
    if len(found) < 2:
        return None
    (run.path / PATH).write_text(diff_of(found), encoding="utf-8", errors="replace")
    return Artifact(path=PATH, media_type="text/x-diff", producer="notes", title="Changes from solution to solution")


def diff_of(solutions: list[Solution]) -> str:
    """Return unified diffs, each preceded by a line that names the solution; `patch` ignores these lines."""
    parts = []
    for solution in solutions:
        before = solutions[solution.parent] if solution.parent is not None else None
        came = f"from {before.name}" if before else "fresh"
        about = f" ({solution.about})" if solution.about else ""
        parts.append(f"# {solution.name}{about}, {came}\n")
        parts += _changes(before.files if before else {}, solution.files)
    return "".join(parts)


def _changes(before: dict[str, str], after: dict[str, str]) -> list[str]:
    lines: list[str] = []
    for name in sorted({*before, *after}):
        old, new = before.get(name, ""), after.get(name, "")
        if old == new:
            continue
        changed = difflib.unified_diff(
            old.splitlines(keepends=True),
            new.splitlines(keepends=True),
            f"a/{name}" if name in before else "/dev/null",
            f"b/{name}" if name in after else "/dev/null",
        )
        lines += [line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in changed]
    return lines
