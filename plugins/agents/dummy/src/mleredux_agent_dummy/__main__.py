"""Submit the sample submission, and write code and a rollout as example outputs. Uses only the standard library."""

from __future__ import annotations

import sys

from mleredux_agentkit import Task, Trajectory, write

CODE = """\
import shutil
import sys

# python solution.py DATA_DIR SUBMISSION
shutil.copyfile(sys.argv[1] + "/{sample}", sys.argv[2])
"""


def main() -> int:
    """Run the agent; return exit code 1 if the task has no sample submission."""
    task = Task()
    name = task.facts.get("sample")
    write(task.output_dir / "code" / "solution.py", CODE.format(sample=name or "sample_submission.csv"))
    if task.sample is not None:
        task.submit(task.sample)
        result = f"copied {name} to {task.submission.name}"
    else:
        result = f"{name} is not among the public files" if name else "the task has no sample submission"
    print(result)
    failed = task.sample is None
    Trajectory(task, "dummy", prompt=f"Solve the task {task.name}.").act(
        "Submit the sample submission.", "copy_sample", {"sample": name or ""}, result,
        stage="submit", model="sample submission", is_buggy=failed,
    )  # fmt: skip
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
