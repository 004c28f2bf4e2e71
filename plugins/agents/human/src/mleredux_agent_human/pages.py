"""Web pages for people: take a task, download its files, submit, and see the grade once it is due."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import zipfile
from typing import Any

from mleredux.errors import MlereduxError, NotFound
from mleredux.plugin.artifact import Run
from mleredux.plugin.page import Download, Visit
from mleredux.plugin.task import Task
from mleredux_agentkit.wire import NoSession, request

from mleredux_agent_human.plugin import is_person
from mleredux_agent_human.workspace import send

_START_SECONDS = 600
_ZIP_BYTES = 2 << 30


def people(visit: Visit) -> dict[str, Any]:
    """List the runs of people, the newest first."""
    rows = [row for row in visit.rows(2_000, search="human") if is_person(str(row["agent"]))]
    return {"rows": rows, "here": _here(visit)}


def offer(visit: Visit, task: Task) -> dict[str, Any] | None:
    """Return the form on the page of a task."""
    return {} if _here(visit) else None


def start(visit: Visit) -> str:
    """Open a workspace for a person, as `mleredux human start --detach` does.

    Raises:
        MlereduxError: The workspace can't be opened; the message is that of the command.
    """
    _check_here(visit)
    fields = {name: (values or [""])[-1].strip() for name, values in visit.form.items()}
    command = ["human", "start", "--detach", "--json", "--runs-dir", str(visit.folder)]
    command += ["--data-dir", str(visit.data_dir)] if visit.data_dir else []
    for option, name in (("--name", "name"), ("--time-limit", "time_limit"), ("--feedback", "feedback")):
        command += [f"{option}={fields[name]}"] if fields.get(name) else []
    command += ["--", fields.get("task", "")]
    done = subprocess.run(
        [sys.executable, "-m", "mleredux", *command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_START_SECONDS,
        check=False,
    )
    if done.returncode:
        errors = [line.removeprefix("Error: ") for line in done.stderr.splitlines() if "Error: " in line]
        raise MlereduxError(errors[-1] if errors else "The workspace could not be opened.", hint="Change the form.")
    return visit.link("people", json.loads(done.stdout)["id"])


def workspace(visit: Visit) -> dict[str, Any]:
    """Show a person's run: its clock, its submissions, and the next steps."""
    run = _run(visit)
    try:
        clock = str(request(run.output_dir, "clock")["message"]) if _here(visit) and not run.state.final else None
    except NoSession:
        clock = None
    return {"run": run, "clock": clock, "versions": run.submissions()[::-1], "due": _due(run), "here": _here(visit)}


def task_files(visit: Visit) -> Download:
    """Send a packed copy of the files in an agent's task folder."""
    run = _run(visit)
    folder = run.path / "task"
    data = (folder / "data").resolve()
    files = {path.name: path for path in folder.iterdir() if path.is_file()}
    files |= {f"data/{path.relative_to(data)}": path for path in sorted(data.rglob("*")) if path.is_file()}
    if visit.static or sum(path.stat().st_size for path in files.values()) > _ZIP_BYTES:
        raise MlereduxError("The files are too large to download.", hint=f"They are in {folder}.")
    packed = tempfile.TemporaryFile()  # noqa: SIM115 (closed when it was sent)
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, path in files.items():
            archive.write(path, name)
    return Download(f"{run.spec.task}.zip", packed)


def submit(visit: Visit) -> str:
    """Submit an uploaded file; its format is checked, and the last submission counts."""
    _check_here(visit)
    run = _run(visit)
    if "file" not in visit.files:
        raise MlereduxError("No file was chosen.", hint="Choose a file, and submit again.")
    answer = send(run, "submit", visit.files["file"])
    visit.say(f"{'Valid' if answer['valid'] else 'Not valid'}: {answer['message']}")
    return visit.link("people", run.id)


def finish(visit: Visit) -> str:
    """End the session; the submission is graded once grading is due."""
    _check_here(visit)
    run = _run(visit)
    visit.say(str(send(run, "finish")["message"]))
    return visit.link("people", run.id)


def _run(visit: Visit) -> Run:
    run = visit.open(visit.parts["run_id"])
    if not is_person(run.spec.agent):
        raise NotFound(f"Run {run.id} was not started by a user.", hint="See the list of runs.")
    return run


def _due(run: Run) -> str:
    """Return a sentence that states when the grade is shown."""
    end = run.hold_end
    if end is None:
        return "The submission is graded immediately."
    if end.year == 9999:  # until it is released
        return "It is graded when the teacher releases feedback."
    return f"It is graded after {end:%Y-%m-%d %H:%M %Z}."


def _here(visit: Visit) -> bool:
    return visit.folder is not None and not visit.static


def _check_here(visit: Visit) -> None:
    if not _here(visit):
        raise MlereduxError("Workspaces open on a local machine only.", hint="Run `mleredux view` there.")
