"""What the child process does that scores.

It gives up the network before anything is read that an agent left, and limits its own memory.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mleredux._core.plugins import Catalogue

_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_PR_SET_PDEATHSIG = 1


def main(request: Mapping[str, Any], _files: Sequence[int]) -> None:
    """Score what the request names, one by one.

    Each answer is a file: `{"score": …}`, `{"invalid": sentence}` or `{"error": sentence}`, with `offline`: whether
    there was no network. Where memory runs out, this process is not fit for the next one, and ends.
    """
    offline = leave_network()
    die_with(request["parent"])
    limit_memory(request["memory_mb"] * 2**20)
    with contextlib.suppress(OSError):  # where memory runs out all the same, this process goes first
        Path("/proc/self/oom_score_adj").write_text("1000")
    from mleredux._core.plugins import Catalogue
    from mleredux._core.plugins.catalogue import set_current

    catalogue = Catalogue(block=request["block"], load=request["load"])
    set_current(catalogue)
    for (task, submission, private), answer in zip(request["jobs"], request["answers"], strict=True):
        temporary = Path(answer + ".part")
        answered = {**score(catalogue, task, Path(submission), Path(private)), "offline": offline}
        temporary.write_text(json.dumps(answered), encoding="utf-8")
        temporary.replace(answer)
        if answered.get("felled"):
            return


def leave_network() -> bool:
    """Move this process into a network namespace of its own, with nothing in it; False where the kernel forbids it."""
    if sys.platform != "linux":
        return False
    library = ctypes.CDLL(None, use_errno=True)
    flags = _CLONE_NEWNET if os.geteuid() == 0 else _CLONE_NEWNET | _CLONE_NEWUSER
    return bool(library.unshare(flags) == 0)


def die_with(parent: int) -> None:
    """Let this process be killed when its parent is; after `leave_network`, which would undo it."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        raise SystemExit(1)


def limit_memory(limit: int) -> None:
    """Allow this process so many bytes of data, and no core files."""
    for number, value in ((resource.RLIMIT_DATA, limit), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(number)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(number, (value, value))


def score(catalogue: Catalogue, name: str, submission: Path, private: Path) -> dict[str, Any]:
    """Score one submission by the hook."""
    from mleredux.errors import InvalidSubmission, MlereduxError, one_line

    try:
        task = catalogue.task(name)
        found = catalogue.hook("mleredux_grade")(task=task, submission=submission, private=private)
        if found is None:
            return {"error": f"no plugin grades {task.id}"}
        return {"score": found.model_dump(mode="python")}
    except InvalidSubmission as error:
        return {"invalid": str(error)}
    except MemoryError:
        return {"error": "scoring needed more memory than its limit", "felled": True}
    except MlereduxError as error:
        return {"error": str(error).rstrip(".")}
    except Exception as error:  # a grader may raise anything; the parent tells it of the task
        return {"error": one_line(error)}
