"""A task as a task directory of Harbor, schema 1.4: what agents see in `environment`, the answers only in `tests`."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import tempfile
from pathlib import Path

import mleredux
from mleredux.errors import MlereduxError
from mleredux.plugin.command import current
from mleredux.plugin.task import Task
from mleredux_agents import RewardRule, rule_of

from mleredux_bridge_harbor.packages import copy_packages, graders_of

WORK, DATA = "/workspace", "/data"
_TIME_LIMIT = 3600
_STANDING = rule_of("standing")
_INSTALL = """\
RUN if [ -d wheels ]; then set -- --no-index --find-links wheels; fi; \\
    python3 -m pip install --no-cache-dir "$@" -r requirements.txt
"""
_AGENT = """\
FROM {image}
ENV PIP_BREAK_SYSTEM_PACKAGES=1
WORKDIR /build
COPY . .
{install}{withhold}RUN mv /build/data {data} && rm -rf /build
WORKDIR {work}
"""
_VERIFIER = """\
FROM {image}
ENV PIP_BREAK_SYSTEM_PACKAGES=1
WORKDIR /tests
COPY . .
{install}RUN rm -rf wheels && chmod 700 /tests
WORKDIR {work}
"""
_WITHHOLD = """\
RUN find "$(python3 -c 'import {package} as found; print(found.__path__[0])')" -type f \\
    ! -name '*.py' ! -name '*.so' -delete
"""
_TEST = """\
#!/bin/sh
# Grades the submission by mleredux; the reward is in reward.json.
set -eu
tests=$(cd "$(dirname "$0")" && pwd)
export PYTHONPATH="$tests/packages" PYTHONDONTWRITEBYTECODE=1
submission=${{SUBMISSION:-{submission}}} logs=${{LOGS:-/logs/verifier}}
exec python3 "$tests/grade.py" "$submission" {task} {rule} {invalid} "$tests/data" "$logs"
"""
_INSTRUCTION = """\
The data is in `{data}`. Write your submission to `{submission}`. There is no network.

"""
_CONFIG = """\
schema_version = "1.4"
artifacts = [{submission}]

[task]
name = {name}
description = {title}
keywords = ["machine-learning", "mleredux"]

[metadata]
task = {task}
task_version = {version}
metric = {metric}
is_lower_better = {lower}

[environment]
network_mode = "no-network"
workdir = {work}
{resources}
[agent]
timeout_sec = {seconds}

[verifier]
environment_mode = "separate"
timeout_sec = 600.0

[verifier.environment]
network_mode = "no-network"
"""


def write_task(
    name: str,
    output: Path,
    rule: RewardRule = _STANDING,
    *,
    image: str = "python:3.13-slim",
    time_limit: float | None = None,
    data_dir: Path | str | None = None,
) -> None:
    """Write a task as a task directory of Harbor.

    Args:
        name: The id of the task; it is prepared if it is not.
        output: The folder to make.
        rule: The rule of rewards; one of `REWARDS`.
        image: An image with Python and pip, from which both images are built.
        time_limit: Seconds that agents get; None: what the task declares, or an hour.
        data_dir: As in `mleredux.prepare`.

    Raises:
        NotFound: There is no such task.
        DataError: The task can't be prepared.
        MlereduxError: The folder exists or can't be made, or a file or module without a distribution registers the task
            or its grader.
    """
    if os.path.lexists(output):
        raise MlereduxError(f"{output} exists.", hint="Name a folder that does not exist, or delete it.")
    task = current().task(name)
    owners = graders_of(task)
    public = mleredux.prepare(name, data_dir=data_dir).public
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        temporary = tempfile.TemporaryDirectory(dir=output.parent, prefix=f".{output.name}-")
    except OSError as error:
        hint = "Name a folder inside one that you can write to."
        raise MlereduxError(f"{output} can't be made: {error.strerror}.", hint=hint) from error
    with temporary as made:
        folder = Path(made) / "task"
        _write_environment(task, public, folder / "environment", image)
        _write_verifier(task, public.parent, folder / "tests", image, rule, owners)
        told = _INSTRUCTION.format(data=DATA, submission=_submission(task))
        (folder / "instruction.md").write_text(told + task.describe(), encoding="utf-8")
        (folder / "task.toml").write_text(_config(task, time_limit), encoding="utf-8")
        folder.rename(output)


def _submission(task: Task) -> str:
    return f"{WORK}/{task.submission.file}"


def _write_environment(task: Task, public: Path, folder: Path, image: str) -> None:
    shutil.copytree(public, folder / "data")
    withhold = "".join(_WITHHOLD.format(package=package) for package in sorted(_withheld(task)))
    recipe = _AGENT.format(image=image, install=_INSTALL, withhold=withhold, data=DATA, work=WORK)
    (folder / "Dockerfile").write_text(recipe, encoding="utf-8")
    (folder / "requirements.txt").write_text("pandas\nscikit-learn\n", encoding="utf-8")


def _withheld(task: Task) -> set[str]:
    """The packages whose data hold answers, also of the task that this one is derived from."""
    own = {name.rpartition(".")[0] for name in task.known_answers}
    return own | _withheld(task.base) if task.base is not None else own


def _write_verifier(task: Task, prepared: Path, folder: Path, image: str, rule: RewardRule, owners: set[str]) -> None:
    shutil.copytree(prepared, folder / "data" / task.id / "prepared")
    pinned = copy_packages(owners, folder / "packages")
    (folder / "requirements.txt").write_text("".join(f"{line}\n" for line in pinned), encoding="utf-8")
    shutil.copy(Path(__file__).with_name("grade.py"), folder)
    script = folder / "test.sh"
    arguments = {"submission": _submission(task), "task": shlex.quote(task.id), "rule": rule.name}
    script.write_text(_TEST.format(**arguments, invalid=rule.invalid), encoding="utf-8")
    script.chmod(0o755)
    (folder / "Dockerfile").write_text(_VERIFIER.format(image=image, install=_INSTALL, work=WORK), encoding="utf-8")


def _config(task: Task, time_limit: float | None) -> str:
    grader = task.metric.grader
    text = {
        "submission": _submission(task),
        "name": f"mleredux/{task.id.replace('@', '-').replace('+', '-')}",
        "title": task.title,
        "task": task.id,
        "version": task.version,
        "metric": grader if isinstance(grader, str) else grader.id,
        "work": WORK,
    }
    asked = task.resources
    wanted = {"cpus": asked.cpus, "memory_mb": asked.memory_mb, "gpus": asked.gpus or None}
    return _CONFIG.format(
        # Strings of JSON are strings of TOML, except for DEL and escaped pairs of surrogates.
        **{key: json.dumps(value, ensure_ascii=False).replace("\x7f", r"\u007f") for key, value in text.items()},
        resources="".join(f"{key} = {value}\n" for key, value in wanted.items() if value is not None),
        lower=json.dumps(task.direction == "minimize"),
        seconds=float(time_limit or asked.time_limit or _TIME_LIMIT),
    )
