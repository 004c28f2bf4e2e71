"""The solutions of a run, in order, from its rollout or the code stored with submissions; the changes between them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mleredux.errors import MlereduxError
from mleredux.models.formats import plain
from mleredux.plugin.artifact import Artifact, Run
from mleredux.plugin.files import IntakeLimits, write_atomically
from mleredux_rollout import Step, read_files, step_extra, steps_of

MAX_SOLUTIONS = 500
MAX_CODE = 1 << 20
"""Maximum number of bytes of code read per solution."""
_LIMITS = IntakeLimits(files=1_000, file_bytes=MAX_CODE, total_bytes=8 * MAX_CODE)
_CODE_ARGUMENTS = ("code", "source", "script", "file_text", "content", "new_content")
ENTRIES = ("reproduce.py", "solution.py", "best_solution.py", "main.py", "train.py", "run.py")


@dataclass(frozen=True)
class Solution:
    """One solution.

    Attributes:
        name: `step 4`, or `version 2`.
        about: Its stage and known quality, in a few words.
        files: Contents of code files by path.
        parent: Index of the solution from which it was derived; None for a new draft.
    """

    name: str
    about: str
    files: dict[str, str]
    parent: int | None


def solutions_of(run: Run) -> list[Solution]:
    """Return the solutions in order, each different from its parent; at most `MAX_SOLUTIONS`."""
    solutions = list(_of_rollout(run)) or list(_of_versions(run))
    return solutions[:MAX_SOLUTIONS]


def _of_rollout(run: Run) -> Iterator[Solution]:
    by_node: dict[str, int] = {}
    count = 0
    for step in steps_of(run):
        code = _code_of(step)
        if code is None:
            continue
        facts = step_extra(step)
        words = [facts.stage, "buggy" if facts.is_buggy else None]
        if facts.validation_metric is not None:
            words.append(f"{facts.metric_name or 'validation'} {plain(facts.validation_metric, 6)}")
        parent = by_node.get(facts.parent_id or "")
        if facts.node_id is None:
            parent = count - 1 if count else None
        else:
            by_node[facts.node_id] = count
        yield Solution(f"step {step.step_id}", ", ".join(filter(None, words)), {"solution": code}, parent)
        count += 1


def _code_of(step: Step) -> str | None:
    """Return the code that a step runs: an argument of its tool call that contains a program."""
    for call in step.tool_calls or ():
        named = str(call.arguments.get("path") or call.arguments.get("filename") or "x.py")
        for name in _CODE_ARGUMENTS:
            value = call.arguments.get(name)
            if isinstance(value, str) and value.strip() and named.endswith((".py", ".R", ".jl", ".ipynb", ".sh")):
                return value[:MAX_CODE]
    return None


def _of_versions(run: Run) -> Iterator[Solution]:
    before: dict[str, str] | None = None
    count = 0
    for version in run.submissions():
        files = read_code(version.code)
        if files and files != before:
            yield Solution(f"version {version.number}", "", files, count - 1 if count else None)
            before, count = files, count + 1


def read_code(folder: Path) -> dict[str, str]:
    """Read text files written by an agent, by path, each of at most `MAX_CODE` bytes; links are not followed."""
    files = read_files(folder, _LIMITS)
    return {path: data.decode("utf-8", "replace") for path, data in files if b"\0" not in data}


def final_code(run: Run) -> dict[str, str]:
    """Return the agent's code in `output/code`, by path."""
    return read_code(run.output_dir / "code")


def entry_of(files: dict[str, str], entry: str | None = None) -> str:
    """Return the file that creates the submission.

    Raises:
        MlereduxError: There is no such file, or the choice is ambiguous.
    """
    if entry is not None:
        if entry not in files:
            raise MlereduxError(
                f"{entry} not found in the run's code.", hint=f"Available files: {', '.join(sorted(files)) or 'none'}."
            )
        return entry
    programs = [name for name in files if name.endswith(".py")]
    named = [name for name in ENTRIES if name in programs]
    if named or len(programs) == 1:
        return (named or programs)[0]
    if not programs:
        raise MlereduxError("The run has no Python code in output/code.", hint="Choose a run with Python code.")
    raise MlereduxError(
        f"Several files could create the submission: {', '.join(sorted(programs))}.", hint="Select one with --entry."
    )


PATH = "solutions.diff"


def produce_diff(run: Run) -> Artifact | None:
    """Write the diffs; return None if the run has fewer than two solutions."""
    solutions = solutions_of(run)
    if len(solutions) < 2:
        return None
    write_atomically(run.path / PATH, diff_of(solutions).encode("utf-8", "replace"))
    return Artifact(path=PATH, media_type="text/x-diff", producer="notes", title="Changes from solution to solution")


def diff_of(solutions: list[Solution]) -> str:
    """Return unified diffs, each preceded by a line that names the solution; `patch` ignores these lines."""
    parts = []
    for solution in solutions:
        before = solutions[solution.parent] if solution.parent is not None else None
        origin = f"from {before.name}" if before else "fresh"
        about = f" ({solution.about})" if solution.about else ""
        parts.append(f"# {solution.name}{about}, {origin}\n")
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
