"""Child processes that score or check submissions. Each drops its network access and limits its memory before it reads
anything that an agent wrote.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mleredux._core.launcher import LIBC, PR_SET_PDEATHSIG, prctl, restrict

if TYPE_CHECKING:
    from mleredux._core.plugins import Catalogue

_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000


def grade(request: Mapping[str, Any], _files: Sequence[int]) -> None:
    """Score the submissions of the request one by one.

    Each answer is a file: `{"score": …}`, `{"invalid": sentence}` or `{"error": sentence}`, with `offline`: whether
    there was no network. If memory runs out, this process can't continue reliably, so it ends.
    """
    with contextlib.suppress(OSError):  # if memory runs out nevertheless, this process is killed first
        Path("/proc/self/oom_score_adj").write_text("1000")
    catalogue, offline = _enter(request)
    for (task, submission, private), answer in zip(request["jobs"], request["answers"], strict=True):
        temporary = Path(answer + ".part")
        answered = {**_score(catalogue, task, Path(submission), Path(private)), "offline": offline}
        temporary.write_text(json.dumps(answered), encoding="utf-8")
        temporary.replace(answer)
        if answered.get("felled"):
            return


def validate(request: Mapping[str, Any], files: Sequence[int]) -> None:
    """Check an open file, and write the problem or null, with its execution time, to another file.

    A program is executed on one processor, so that its CPU time does not exceed the wall time.
    """
    submission, answer = files
    catalogue, _ = _enter(request)
    from mleredux._core.submissions.validation import check
    from mleredux.errors import InvalidSubmission, NotFound, SandboxError, TaskBroken
    from mleredux.models import SubmissionSchema

    schema = SubmissionSchema.model_validate(request["schema"])
    fault, begun = None, None
    try:
        task = catalogue.task(schema.task) if schema.reference is not None or schema.public is not None else None
        with os.fdopen(submission, "rb") as file:
            if schema.public is not None and task is not None and (execution := task.submission.execution):
                if sys.platform == "linux":
                    os.sched_setaffinity(0, {random.choice(sorted(os.sched_getaffinity(0)))})
                begun = time.monotonic()
                execution.check(task, file, schema.public, request["seconds"])
            else:
                check(schema, file, task)
    except InvalidSubmission as error:
        fault = str(error)
    except (NotFound, SandboxError, TaskBroken) as error:
        fault = f"{schema.file} could not be checked: {error}"
    except MemoryError:
        fault = f"{schema.file} needs more than {request['memory_mb'] >> 10} GiB of memory to be checked."
    with os.fdopen(answer, "w") as file:
        json.dump([fault, 0.0 if begun is None else time.monotonic() - begun], file)


def _enter(request: Mapping[str, Any]) -> tuple[Catalogue, bool]:
    """Drop all access that a grader does not need; return the parent's plugins, and whether there is no network."""
    offline = leave_network()
    die_with(request["parent"])
    restrict({"RLIMIT_DATA": request["memory_mb"] << 20, "RLIMIT_CORE": 0})
    from mleredux._core.plugins.catalogue import Catalogue, set_current

    catalogue = Catalogue(block=request["block"], load=request["load"])
    set_current(catalogue)
    return catalogue, offline


def leave_network() -> bool:
    """Move this process into a new, empty network namespace; return False if the kernel forbids it."""
    if sys.platform != "linux":
        return False
    return bool(LIBC.unshare(_CLONE_NEWNET if os.geteuid() == 0 else _CLONE_NEWNET | _CLONE_NEWUSER) == 0)


def die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent dies; call this after `leave_network`, which would undo it."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        raise SystemExit(1)


def _score(catalogue: Catalogue, name: str, submission: Path, private: Path) -> dict[str, Any]:
    """Score one submission with the hook."""
    from mleredux.errors import InvalidSubmission, MlereduxError, SandboxError, StoreError, one_line

    try:
        task = catalogue.task(name)
        score = catalogue.hook("mleredux_grade")(task=task, submission=submission, private=private)
        if score is None:
            return {"error": f"no plugin grades {task.id}"}
        return {"score": score.model_dump(mode="python")}
    except InvalidSubmission as error:
        return {"invalid": str(error)}
    except MemoryError:
        return {"error": "scoring needed more memory than its limit", "felled": True}
    except MlereduxError as error:
        return {"error": str(error).rstrip("."), "passes": isinstance(error, (SandboxError, StoreError))}
    except Exception as error:  # a grader may raise anything; the parent reports it with the task
        return {"error": one_line(error)}
