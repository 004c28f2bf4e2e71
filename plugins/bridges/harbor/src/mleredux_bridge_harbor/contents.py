"""The data of a task directory: public files for agents, answers for the verifier, and a solution.

In a directory without data, `fetch.sh` runs this module with the user's own credentials.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import mleredux
from mleredux.errors import MlereduxError
from mleredux.plugin.command import current
from mleredux.plugin.task import Task
from mleredux_agents import RewardRule, rule_of, solution_of

from mleredux_bridge_harbor.exposure import exposed

WORK = "/workspace"
"""The working directory of agents."""
_SOLVE = """\
#!/bin/sh
# Submits the solution.
cp "$(dirname "$0")/{file}" "${{SUBMISSION:-{work}/{file}}}"
"""


def fill(folder: Path, task: Task, rule: RewardRule, data_dir: Path | str | None = None) -> float | None:
    """Write the data into a task directory, and a solution, if there is one.

    Args:
        folder: The task directory, without data.
        task: The task, which is prepared if necessary.
        rule: The reward rule.
        data_dir: As in `mleredux.prepare`.

    Returns:
        The reward of the solution; None if there is none.

    Raises:
        DataError: The task can't be prepared.
        MlereduxError: Agents would see parts of the answers, the graders or the solution.
    """
    public = mleredux.prepare(task.id, data_dir=data_dir).public
    shutil.copytree(public, folder / "environment" / "data")
    unfinished = shutil.ignore_patterns(".writing-*")  # other threads use the data for the first time
    shutil.copytree(public.parent, folder / "tests" / "data" / task.id / "prepared", ignore=unfinished)
    reward = _write_solution(folder / "solution", task, public.parent, rule, data_dir)
    if shown := list(exposed(folder, task)):
        raise MlereduxError(
            f"Agents would see hidden data: {'; '.join(shown)}.", hint="Remove it from the public files."
        )
    return reward


def write_script(path: Path, text: str) -> None:
    """Write an executable file."""
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def _write_solution(
    folder: Path, task: Task, prepared: Path, rule: RewardRule, data_dir: Path | str | None
) -> float | None:
    if (content := solution_of(task, prepared)) is None:
        return None
    folder.mkdir()
    (folder / task.submission.file).write_bytes(content)
    write_script(folder / "solve.sh", _SOLVE.format(file=task.submission.file, work=WORK))
    report = mleredux.grade(folder / task.submission.file, task.id, data_dir=data_dir)
    if report.valid_submission:
        return rule.of_report(report)
    shutil.rmtree(folder)
    return None


if __name__ == "__main__":
    fill(Path.cwd(), current().task(sys.argv[1]), rule_of(sys.argv[2], float(sys.argv[3])))
