"""Tasks and agents as named by users: by id, by set, by reference, or by the path of a script or folder."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

from mleredux._core.data.debug_sample import refuse_mixed
from mleredux._core.places import split_place
from mleredux._core.plugins import Catalogue
from mleredux.errors import NotFound
from mleredux.models import Task
from mleredux.models.request import SET, Request

SCHEME = "repo:"
"""The scheme of references to scripts, folders and repositories."""
SCRIPTS = (".py", ".ipynb", ".sh")
_REMOTE = re.compile(r"^((https|http|ssh|git|file)://|[\w.-]+@[\w.-]+:[^/])")


def resolved(request: Request, catalogue: Catalogue) -> Request:
    """Return the request with each set replaced by its tasks.

    Raises:
        NotFound: A set has no tasks.
        DataError: Samples (`+debug-N`) are mixed with whole tasks.
    """
    tasks: list[str] = []
    for name in request.tasks:
        tasks += catalogue.task_names((), (name.removeprefix(SET),)) if name.startswith(SET) else (name,)
    refuse_mixed(tasks, "An experiment" if request.experiment is not None else "One command")
    return request.model_copy(update={"tasks": tuple(dict.fromkeys(tasks))})


def imported(catalogue: Catalogue, name: str) -> Task:
    """Return a task by id, or import the task of a reference with a scheme (`harbor:PATH`), whose id is then pinned.

    References read files on this machine, so only its own users may use them.

    Args:
        catalogue: The plugins.
        name: An id, or a reference with a scheme.

    Raises:
        NotFound: No plugin knows the scheme, or as for `Catalogue.task`.
        MlereduxError: The task can't be imported.
    """
    scheme, colon, _ = name.partition(":")
    if not colon:
        return catalogue.task(name)
    task_id: str | None = catalogue.call_scheme("import_task", name)
    if task_id is None:
        raise NotFound(f"No plugin supports tasks with the scheme {scheme!r}.", hint="See `mleredux list`.")
    return catalogue.task(task_id)


def check_metric(catalogue: Catalogue, task: Task) -> None:
    """Check that a task's metric can be computed on this machine, before an agent runs.

    Raises:
        NotFound: Its grader, or a library that the grader needs, is not installed; the hint names what to install.
    """
    grader = task.metric.grader
    if not isinstance(grader, str):
        requires = grader.requires
    elif entry := catalogue.entries("graders").get(grader):
        requires = entry.ref.summary.get("requires", {})
    else:
        from mleredux._core.plugins.directory import suggestion

        hint = suggestion("graders", grader, list(catalogue.entries("graders")), catalogue.plugins)
        raise NotFound(f"Task {task.id} is graded with {grader!r}, but there is no such grader.", hint=hint)
    for module, package in requires.items():
        if find_spec(module) is None:
            name = grader if isinstance(grader, str) else grader.id
            raise NotFound(
                f"Task {task.id} is graded with {name}, which needs the package {module}.",
                hint=f"Install it: `pip install {package!r}`.",
            )


def looks_like_path(name: str) -> bool:
    """Return whether an agent's name can only be the path of a script or folder."""
    return name.startswith((".", "/", "~")) or Path(name).suffix in SCRIPTS or ("/" in name and ":" not in name)


def agent_reference(catalogue: Catalogue, name: str) -> str:
    """Return the reference for an agent's name; a scheme is added to paths and repository URLs.

    Args:
        catalogue: The plugins.
        name: An id, a reference, a path, or the URL of a repository.

    Raises:
        NotFound: The file or folder does not exist.
    """
    if name in catalogue.entries("agents"):
        return name
    exists = Path(split_place(name)[0]).expanduser().exists()
    if _REMOTE.match(name) or (exists and (":" not in name or looks_like_path(name))):
        return SCHEME + name
    if ":" in name and not name.startswith((".", "/", "~")):
        return name
    if looks_like_path(name):
        raise NotFound(
            f"There is no agent {name!r}, and no such file or folder in {Path.cwd()}.",
            hint="Specify the path of a script, a notebook or a folder, or see `mleredux list agents`.",
        )
    return name
