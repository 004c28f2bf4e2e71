"""The child process that checks a submission: `python -m mleredux._core.submissions.validation_child REQUEST`.

It gives up the network before it reads anything that an agent wrote, and limits its own memory.
"""

from __future__ import annotations

import json
import os
import sys

from mleredux._core.stages.grade_child import die_with, leave_network, limit_memory


def main(text: str) -> None:
    """Check the open file that the request names, and print `{"fault": sentence}`, or null for a well-formed one."""
    request = json.loads(text)
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # where plugins print, too
    leave_network()
    die_with(request["parent"])
    limit_memory(request["memory_mb"] << 20)
    from mleredux._core.models import SubmissionSchema
    from mleredux._core.plugins.catalogue import Catalogue, set_current
    from mleredux._core.submissions.validation import check
    from mleredux.errors import InvalidSubmission, NotFound

    schema = SubmissionSchema.model_validate(request["schema"])
    catalogue = Catalogue(block=request["block"], load=request["load"])
    set_current(catalogue)
    fault = None
    try:
        task = catalogue.task(schema.task) if schema.reference is not None else None
        with os.fdopen(request["file"], "rb") as file:
            check(schema, file, task)
    except InvalidSubmission as error:
        fault = str(error)
    except NotFound as error:
        fault = f"{schema.file} could not be checked: {error}"
    except MemoryError:
        fault = f"{schema.file} needs more than {request['memory_mb'] >> 10} GiB of memory to be checked."
    with answer:
        json.dump({"fault": fault}, answer)


if __name__ == "__main__":
    main(sys.argv[1])
