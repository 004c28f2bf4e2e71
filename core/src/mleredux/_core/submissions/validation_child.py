"""What the child process does that checks a submission.

It gives up the network before it reads anything that an agent wrote, and limits its own memory.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from mleredux._core.stages.grade_child import die_with, leave_network, limit_memory


def main(request: Mapping[str, Any], files: Sequence[int]) -> None:
    """Check an open file, and write to another what is wrong with it, or null, and how long it was executed.

    A program is executed on one processor, so that it takes no more CPU time than its time.
    """
    submission, answer = files
    leave_network()
    die_with(request["parent"])
    limit_memory(request["memory_mb"] << 20)
    from mleredux._core.plugins.catalogue import Catalogue, set_current
    from mleredux._core.submissions.validation import check
    from mleredux.errors import InvalidSubmission, NotFound, SandboxError, TaskBroken
    from mleredux.models import SubmissionSchema

    schema = SubmissionSchema.model_validate(request["schema"])
    catalogue = Catalogue(block=request["block"], load=request["load"])
    set_current(catalogue)
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
