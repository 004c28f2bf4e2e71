"""Write a task as a Harbor task directory, schema 1.4: files for agents in `environment`, answers only in `tests`."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import tempfile
from pathlib import Path

from mleredux.errors import MlereduxError, file_errors
from mleredux.plugin.command import current
from mleredux.plugin.task import Task
from mleredux_agents import RewardRule, rule_of

from mleredux_bridge_harbor.contents import WORK, fill, write_script
from mleredux_bridge_harbor.packages import FOLDER, PACKED, copy_packages, graders_of, pack_packages

DATA = "/data"
_TIME_LIMIT, _OWN, _KIT = 3600, "mleredux-bridge-harbor", "mleredux-agents"  # `grade.py` imports the kit
_STANDING = rule_of("standing")
_INSTALL, _AGENT, _VERIFIER, _WITHHOLD, _TEST, _FETCH, _INSTRUCTION, _CONFIG = (
    (Path(__file__).with_name("templates") / name).read_text(encoding="utf-8")
    for name in (
        *("install.Dockerfile", "agent.Dockerfile", "verifier.Dockerfile", "withhold.Dockerfile"),
        *("test.sh", "fetch.sh", "instruction.md", "task.toml"),
    )
)


def write_task(
    name: str,
    output: Path,
    rule: RewardRule = _STANDING,
    *,
    image: str = "python:3.13-slim",
    time_limit: float | None = None,
    data_dir: Path | str | None = None,
    packed: bool = False,
) -> float | str | None:
    """Write a task as a Harbor task directory, without data if redistribution is not allowed.

    Args:
        name: The id of the task, which is prepared if necessary.
        output: The folder to create.
        rule: The reward rule, one of `REWARDS`.
        image: An image with Python and pip, from which both images are built.
        time_limit: Time limit of agents in seconds; None: the task's, or else one hour.
        data_dir: As in `mleredux.prepare`.
        packed: Whether to write the packages of the verifier as an archive, if there is data.

    Returns:
        The reward of the solution, None if there is no solution, or a message that states why there is no data.

    Raises:
        NotFound: There is no such task.
        DataError: The task can't be prepared.
        MlereduxError: The folder exists or can't be created; the image has an invalid name; a file or module without a
            distribution registers the task or its grader; agents would see answers; or the data may not be exported
            and can't be fetched.
    """
    if os.path.lexists(output):
        raise MlereduxError(f"{output} exists.", hint="Choose a folder that does not exist, or delete this one.")
    if not re.fullmatch(r"[\w./:@-]+", image):
        raise MlereduxError(f"The image {image!r} has an invalid name.", hint="Use one such as python:3.13-slim.")
    task = current().task(name)
    source = origin(task)
    owners = graders_of(task)
    why = None if source.license else f"{source.license_source or 'The license of its data is not declared'}."
    if why and source.fetch is None:
        raise MlereduxError(f"{task.id} can't be exported or its data fetched. {why}", hint="Declare its `license`.")
    with file_errors(MlereduxError, f"{output} can't be created", "Choose a folder that you can write to."):
        output.parent.mkdir(parents=True, exist_ok=True)
        temporary = tempfile.TemporaryDirectory(dir=output.parent, prefix=f".{output.name}-")
    with temporary as temporary_path:
        folder = Path(temporary_path) / "task"
        _write_environment(task, folder / "environment", image)
        needed = frozenset({*owners, _KIT, *([_OWN] if why else [])})  # fetch.sh runs this package
        _write_verifier(task, folder / "tests", image, rule, needed, packed=packed and not why)
        instruction = _INSTRUCTION.format(data=DATA, submission=_submission(task)) + task.describe()
        (folder / "instruction.md").write_text(instruction, encoding="utf-8")
        (folder / "task.toml").write_text(_config(task, time_limit, source.license or "none"), encoding="utf-8")
        if why:
            arguments = f"{shlex.quote(task.id)} {rule.name} {rule.invalid}"
            write_script(folder / "fetch.sh", _FETCH.format(why=why, arguments=arguments))
        filled = why or fill(folder, task, rule, data_dir)
        folder.rename(output)
    return filled


def origin(task: Task) -> Task:
    """Return the task that provides the data: the task itself, or the task that it is derived from."""
    return task if task.license or task.base is None else origin(task.base)


def _submission(task: Task) -> str:
    return f"{WORK}/{task.submission.file}"


def _write_environment(task: Task, folder: Path, image: str) -> None:
    folder.mkdir(parents=True)
    withhold = "".join(_WITHHOLD.format(package=package) for package in sorted(_withheld(task)))
    recipe = _AGENT.format(image=image, install=_INSTALL, withhold=withhold, data=DATA, work=WORK)
    (folder / "Dockerfile").write_text(recipe, encoding="utf-8")
    (folder / "requirements.txt").write_text("pandas\nscikit-learn\n", encoding="utf-8")


def _withheld(task: Task) -> set[str]:
    """Return the packages whose data contains answers, including those of the task that this one is derived from."""
    own = {name.rpartition(".")[0] for name in task.known_answers}
    return own | _withheld(task.base) if task.base is not None else own


def _write_verifier(
    task: Task, folder: Path, image: str, rule: RewardRule, needed: frozenset[str], *, packed: bool
) -> None:
    folder.mkdir()
    if packed:
        pinned, archive = pack_packages(needed)
        (folder / PACKED).write_bytes(archive)
    else:
        pinned = copy_packages(needed, folder / FOLDER)
    (folder / "requirements.txt").write_text("".join(f"{line}\n" for line in pinned), encoding="utf-8")
    shutil.copy(Path(__file__).with_name("grade.py"), folder)
    arguments = {"submission": _submission(task), "task": shlex.quote(task.id), "rule": rule.name}
    write_script(folder / "test.sh", _TEST.format(**arguments, invalid=rule.invalid))
    (folder / "Dockerfile").write_text(_VERIFIER.format(image=image, install=_INSTALL, work=WORK), encoding="utf-8")


def _config(task: Task, time_limit: float | None, license: str) -> str:
    grader = task.metric.grader
    text = {
        "submission": _submission(task),
        "name": f"mleredux/{task.id.replace('@', '-').replace('+', '-')}",
        "title": task.title,
        "task": task.id,
        "version": task.version,
        "license": license,
        "metric": grader if isinstance(grader, str) else grader.id,
        "work": WORK,
    }
    resources = task.resources
    wanted = {"cpus": resources.cpus, "memory_mb": resources.memory_mb, "gpus": resources.gpus or None}
    return _CONFIG.format(
        # JSON strings are valid TOML strings, except for DEL and escaped surrogate pairs.
        **{key: json.dumps(value, ensure_ascii=False).replace("\x7f", r"\u007f") for key, value in text.items()},
        resources="".join(f"{key} = {value}\n" for key, value in wanted.items() if value is not None),
        lower=json.dumps(task.direction == "minimize"),
        seconds=float(time_limit or resources.time_limit or _TIME_LIMIT),
    )
