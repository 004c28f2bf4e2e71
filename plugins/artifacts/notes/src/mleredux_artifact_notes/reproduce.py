"""Rerun the final code of a run in its own environment, to check whether it creates the same submission."""

from __future__ import annotations

import contextlib
import csv
import filecmp
import itertools
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from mleredux.errors import MlereduxError
from mleredux.models.formats import counted, plain
from mleredux.plugin import Scheme
from mleredux.plugin.agent import Agent, Build
from mleredux.plugin.artifact import Artifact, Run, RunStore, State
from mleredux.plugin.command import Catalogue
from mleredux.plugin.files import write_atomically

from mleredux_artifact_notes.rerun import RUNNER, write_code
from mleredux_artifact_notes.solutions import entry_of, final_code

_MAX_CELL = 1 << 24


@dataclass(frozen=True)
class Comparison:
    """The differences between two CSV files, compared cell by cell in order.

    Attributes:
        identical: Whether the bytes are the same.
        cells: Number of compared cells.
        differing: Number of cells that differ by more than the tolerance, or as strings.
        largest: The largest numeric difference; None if no numbers differ.
        reason: Why the files cannot be compared cell by cell, if so.
    """

    identical: bool
    cells: int = 0
    differing: int = 0
    largest: float | None = None
    reason: str | None = None

    @property
    def equal(self) -> bool:
        """Return whether the files are equal within the tolerance."""
        return self.identical or (self.reason is None and self.differing == 0)

    def as_json(self) -> dict[str, Any]:
        """Return the fields for the JSON record."""
        return {**vars(self), "equal": self.equal}


def compare(first: Path, second: Path, tolerance: float) -> Comparison:
    """Compare two submissions.

    Args:
        tolerance: Maximum difference between two numbers, relative to the larger one, or absolute if that is below 1.
    """
    if filecmp.cmp(first, second, shallow=False):
        return Comparison(True)
    csv.field_size_limit(_MAX_CELL)
    cells = differing = 0
    largest: float | None = None
    with (
        first.open(encoding="utf-8", errors="replace", newline="") as first_file,
        second.open(encoding="utf-8", errors="replace", newline="") as other,
    ):
        try:
            for number, (before, after) in enumerate(itertools.zip_longest(csv.reader(first_file), csv.reader(other))):
                if before is None or after is None:
                    return Comparison(False, cells, differing, largest, f"one of the files ends at row {number}")
                if len(before) != len(after):
                    return Comparison(False, cells, differing, largest, f"row {number} has different columns")
                for old, new in zip(before, after, strict=True):
                    cells += 1
                    if old == new:
                        continue
                    gap = _gap(old, new)
                    if gap is not None:
                        largest = max(largest or 0.0, gap[0])
                    if gap is None or gap[1] > tolerance:
                        differing += 1
        except csv.Error as error:
            return Comparison(False, cells, differing, largest, f"one of the files is not a valid CSV file ({error})")
    return Comparison(False, cells, differing, largest)


def _gap(old: str, new: str) -> tuple[float, float] | None:
    """Return the absolute difference of two numbers, and the one compared with the tolerance; None if either is not a
    number."""
    with contextlib.suppress(ValueError):
        before, after = float(old), float(new)
        if math.isfinite(gap := abs(before - after)):
            return gap, gap / max(1.0, abs(before), abs(after))
    return None


SCHEME = "reproduce:"
PATH = "reproduction.json"
TOLERANCE = 1e-6


def agent_of(reference: str) -> Agent:
    """Return the agent that runs the final code of a run: `reproduce:RUN_DIRECTORY[#ENTRY]`.

    A user's own script is executed with the modules that belong to it.

    Raises:
        MlereduxError: The run has no code, or the file to run is ambiguous.
    """
    path, quoted_entry = reference.removeprefix(SCHEME), ""
    if not Path(path).is_dir():  # its own name may contain a `#`
        path, _, quoted_entry = path.rpartition("#")
    from mleredux.plugin.command import current

    run = Run(Path(path))
    image = "image" in current().sandbox(run.spec.sandbox).capabilities.builds
    script = None
    with contextlib.suppress(MlereduxError):  # its source may no longer exist
        agent = current().agent(run.spec.agent, run.spec.options)
        script = agent if agent.verify and agent.verify == agent.command and not quoted_entry else None
    entry = "" if script else entry_of(final_code(run), unquote(quoted_entry) or None)
    return Agent(
        id="reproduce",
        title=f"The final code of run {run.id}",
        command=script.command if script else ("sh", "-c", RUNNER, "sh", entry),
        env=script.env if script else {},
        build=Build(image=run.use.image) if image else Build(folder=script.build.folder if script else None),
        limits=run.spec.limits,
        network="none",
        reference=f"{SCHEME}{run.path}#{quote(entry)}",
    )


def reproduce(
    run: Run,
    store: RunStore,
    catalogue: Catalogue,
    *,
    entry: str | None = None,
    tolerance: float = TOLERANCE,
    progress: Callable[[Run, str], None] = lambda _run, _message: None,
) -> dict[str, Any]:
    """Rerun the final code and compare the submissions; the result is also written to `reproduction.json`.

    Args:
        run: A finished run.
        store: The store of the new run.
        entry: The file of `output/code` to run; None: determined by its name.
        tolerance: Maximum difference between two numbers, relative to the larger one, or absolute if that is below 1.

    Returns:
        `verdict` (`identical`, `equal`, `same score`, `different` or `failed`), `message`, and the figures that support
        it.

    Raises:
        MlereduxError: The run is not finished, has no graded submission, or has no code to run.
    """
    from mleredux.plugin.artifact import add_artifact
    from mleredux.plugin.command import DataStore
    from mleredux.plugin.experiment import Request, plan
    from mleredux.plugin.host import Pipeline

    report = run.report
    if not run.state.final or report is None or not report.valid_submission:
        raise MlereduxError(f"Run {run.id} has no graded submission to reproduce.", hint="Choose a scored run.")
    reference = f"{SCHEME}{run.path.resolve()}#{quote(entry or '')}"
    spec = run.spec
    [planned] = plan(Request.single(spec.task, reference, sandbox=spec.sandbox, seed=spec.seed), catalogue)
    again = store.create(planned, spec.data_dir)
    write_code(final_code(run), again.output_dir / "code")
    Pipeline(store, catalogue, DataStore(spec.data_dir), progress=progress).execute([again])
    result = {"run": run.id, "repetition": again.id, "entry": unquote(planned.agent.rpartition("#")[2]) or spec.agent}
    result |= _verdict(run, again, tolerance)
    write_atomically(run.path / PATH, json.dumps(result, indent=1) + "\n")
    add_artifact(run, Artifact(path=PATH, media_type="application/json", producer="notes", title="Reproduction"))
    return result


def _verdict(run: Run, again: Run, tolerance: float) -> dict[str, Any]:
    before, after = run.report, again.report
    assert before is not None
    if again.state is not State.DONE or after is None or not after.valid_submission:
        why = again.message or (after.message if after else None) or "it created no submission"
        return {"verdict": "failed", "message": f"The code created no valid submission: {why}"}
    figures = {"score_before": before.score, "score_again": after.score, "tolerance": tolerance}
    same = compare(run.path / before.submission_path, again.path / after.submission_path, tolerance)
    if same.identical:
        result = ("identical", "The code creates the same submission, byte for byte.")
    elif same.equal:
        result = (
            "equal",
            f"The code creates the same submission; numbers differ by at most {plain(same.largest or 0, 3)}.",
        )
    elif before.score == after.score:
        result = ("same score", f"{same.differing:,} of {counted(same.cells, 'cell')} changed; the score is the same.")
    else:
        why = same.reason or f"{same.differing:,} of {counted(same.cells, 'cell')} changed"
        result = ("different", f"The code creates a different submission: {why}; score {before.score} → {after.score}.")
    return {"verdict": result[0], "message": result[1], **figures, "submissions": same.as_json()}


AGENTS = Scheme(id="reproduce", title="The final code of a run", find_agent=agent_of)
