"""Record an agent's access beyond the data, which determines how far its result can be trusted. This includes the
ledger; whether the agent obtained held-out data, shown by the canary next to the answers or by copies of private files;
and whether it changed the prepared data, if its sandbox does not prevent that.
"""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from mleredux._core.data.datastore import SPOILED_FILE
from mleredux._core.data.installation import canary
from mleredux._core.sandboxes.volume import UNLIMITED
from mleredux._core.stages.context import StageContext
from mleredux._core.stages.dev_scores import BITS
from mleredux._core.stages.held_out import LIMITS, private_files
from mleredux._core.store import Run
from mleredux._core.submissions.files import open_regular
from mleredux._core.submissions.intake import HARD_LINKED, hash_regular, walk
from mleredux.errors import MlereduxError
from mleredux.models import DiskLimit, Evidence, Ledger
from mleredux.models.events import DataNoted
from mleredux.models.paths import readable
from mleredux.models.verdict import SUBMITTED_ANSWERS


def make_ledger(context: StageContext, exposed: Sequence[Evidence]) -> Ledger:
    """Return the ledger of a run whose agent has ended.

    Args:
        context: The run.
        exposed: The result of `exposures`.
    """
    run, isolated = context.run, context.sandbox.capabilities.isolated
    state = run.log.state
    notes = [] if isolated else [within_reach(context).why]
    llm, disk = state.llm, state.disk
    if disk is not None and disk.named:
        notes.append("The agent could see the data's path, which contains the name of the task.")
    if (run.path / ".control" / UNLIMITED).exists():
        notes.append("The disk limit does not cover the image's own files that the agent changed.")
    reached = [use.host for use in state.egress if use.phase == "run" and use.allowed]
    return Ledger(
        validations=state.validations,
        validation_seconds=round(state.validation_seconds, 3),
        dev_scores=len(state.dev_scores),
        dev_bits=round(len(state.dev_scores) * BITS, 1),
        network=run.spec.network if isolated else "open",
        hosts=tuple(dict.fromkeys((*(llm.hosts if llm else ()), *reached))),
        egress=state.egress,
        llm_calls=llm.calls if llm else None,
        llm=llm,
        disk=DiskLimit(limit_mb=disk.limit_mb, enforced_by=disk.enforced_by) if disk else None,
        isolated=isolated,
        answers_exposed=bool(exposed) or not isolated,
        answers_seen=any(item.level == "seen" for item in exposed),
        notes=(*notes, *state.data_notes, *(item.why for item in exposed)),
    )


def within_reach(context: StageContext) -> Evidence:
    """Return the evidence against every result from a sandbox that is not a security boundary."""
    why = f"Sandbox {context.sandbox.id} does not protect the answers on this machine from agents."
    return Evidence(kind="sandbox", level="within reach", why=why)


_FOLDERS = ("output", "logs", "submissions", "attempts", "llm")
_NAMED = 20


def exposures(run: Run, private: Path, submission: str = "submission.csv", *, isolated: bool = False) -> list[Evidence]:
    """Return evidence that the agent read held-out files, one item for each of its files that shows it.

    Args:
        run: The run.
        private: The task's private folder.
        submission: Name of the submission file, for which there is a separate kind of evidence: perfect predictions may
            equal the answers.
        isolated: Whether the sandbox hid the answers from the agent; if so, perfection alone proves nothing.
    """
    wanted, evidence = b"", list[Evidence]()
    try:
        wanted = canary(run.spec.task).encode()
    except MlereduxError as error:  # without a salt there is no canary; everything else is still checked
        evidence += [Evidence(kind="canary", level="suspicious", why=f"The search for the canary failed: {error}")]
    files = list(_agent_files(run))
    secret = private_files(private, {size for _, _, size in files})
    for shown, path, size in files:
        with contextlib.suppress(OSError):
            if wanted and _holds(path, wanted):
                why = f"{shown} contains the canary stored next to the answers."
                evidence.append(Evidence(kind="canary", level="seen", why=why))
            same = secret.get(size)
            if same and (digest := hash_regular(path)) in same:
                why = f"{shown} is identical to the private file {same[digest]}."
                submitted = shown.startswith("submissions/") or Path(shown).name == submission
                kind = SUBMITTED_ANSWERS if submitted else "private-file"
                level: Literal["seen", "suspicious"] = "suspicious" if submitted and isolated else "seen"
                evidence.append(Evidence(kind=kind, level=level, why=why))
        if len(evidence) >= _NAMED:
            break
    return evidence


def _agent_files(run: Run) -> Iterator[tuple[str, Path, int]]:
    """Yield the name in the run, the path and the size of each of the agent's files and logs."""
    for name in _FOLDERS:
        folder = run.path / name
        for item in walk(folder, LIMITS) if folder.is_dir() else ():
            if item.reason in (None, HARD_LINKED) and item.size:
                yield f"{name}/{readable(item.path)}", folder / os.fsdecode(item.path), item.size


def _holds(path: Path, wanted: bytes) -> bool:
    with open_regular(path) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return data.find(wanted) >= 0


_CHANGED = "The task's prepared files changed during the run; they will be prepared again for the next one."


def note_data(run: Run, prepared: Path, *, going_on: bool) -> None:
    """Record the state of the data before the agent starts; a resumed run keeps its record for the same data.

    Data on another machine, or data that was prepared again, counts as different data.
    """
    folder, files = stamp(prepared)
    noted = run.log.state.data_stamp or ""
    if not going_on or noted.partition(":")[0] != folder:
        run.emit(DataNoted(status="noted", stamp=f"{folder}:{files}"))


def check_data(run: Run, prepared: Path) -> None:
    """Check whether the data is unchanged; if not, record it in the run and mark the data as damaged."""
    noted = run.log.state.data_stamp
    if noted and ":".join(stamp(prepared)) != noted:
        with contextlib.suppress(OSError):
            (prepared / SPOILED_FILE).touch()
        run.emit(DataNoted(status="changed", message=_CHANGED))


def stamp(prepared: Path) -> tuple[str, str]:
    """Return a quick fingerprint of the identity of a folder, and one of the state of its files.

    Returns:
        Hashes of its path and inode, and of the paths, modes, sizes, and times of last change of its files.
    """
    try:
        inode = prepared.stat().st_ino
    except OSError:
        inode = 0
    digest = hashlib.sha256()
    left = [prepared / "public", prepared / "private"]
    while left:
        folder = left.pop()
        try:
            with os.scandir(folder) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except OSError as error:
            digest.update(f"{folder}: {error.strerror}\0".encode(errors="surrogateescape"))
            continue
        for entry in entries:
            status = entry.stat(follow_symlinks=False)
            if entry.is_dir(follow_symlinks=False):
                left.append(Path(entry.path))
            else:
                line = f"{entry.path}\0{status.st_mode}\0{status.st_size}\0{status.st_mtime_ns}\0"
                digest.update(line.encode(errors="surrogateescape"))
    return hashlib.sha256(f"{prepared}\0{inode}".encode()).hexdigest()[:16], digest.hexdigest()
