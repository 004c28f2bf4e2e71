"""The final code of a run, as a command that runs in a sandbox."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from mleredux.errors import MlereduxError
from mleredux.plugin.artifact import Run

from mleredux_artifact_notes.solutions import entry_of, read_code

PREDICT = "predict.py"
"""The inference entry point by convention."""
WITHHELD = "MLEREDUX_WITHHELD"
"""Variable with packages, separated by colons, whose data files the code may not open."""
# Runs inside the sandbox, where this package is not installed: standard library only.
RUNNER = """
import os, runpy, shutil, sys
output, data, submission = (os.environ["MLEREDUX_" + name] for name in ("OUTPUT_DIR", "DATA_DIR", "SUBMISSION"))
entry, name = os.path.join(output, "code", sys.argv[1]), os.path.basename(submission)
named = os.environ.pop("MLEREDUX_WITHHELD", "").split(":")
withheld = tuple(os.path.join(*part.split("."), "") for part in named if part)
def watch(event, arguments):
    if event == "open" and isinstance(arguments[0], (str, bytes)):
        path = os.fsdecode(arguments[0])
        if any(part in path for part in withheld) and not path.endswith((".py", ".pyc", ".so")):
            raise PermissionError("The answers that ship in this library are withheld: " + path)
if withheld:
    sys.addaudithook(watch)
work = os.path.join(os.environ["MLEREDUX_SCRATCH_DIR"], "work")
for folder in ("working", "submission"):
    os.makedirs(os.path.join(work, folder))
os.symlink(data, os.path.join(work, "input"))
os.chdir(work)
sys.argv = [entry, data, submission]
sys.path.insert(0, os.path.dirname(entry))
try:
    runpy.run_path(entry, run_name="__main__")
finally:
    for place in ("working", "submission", "."):
        made = os.path.join(work, place, name)
        if not os.path.exists(submission) and os.path.exists(made):
            shutil.copyfile(made, submission)
"""
_PROGRAMS = (".py", ".ipynb", ".R", ".r", ".jl", ".sh", ".toml", ".yaml", ".yml", ".cfg", ".ini")
_MAX_CONFIG = 64 << 10


def entry_point(run: Run, asked: str | None = None) -> tuple[str, bool]:
    """Find the file of `output/code` to run, and whether it is an inference entry point, which gets all output files.

    Raises:
        MlereduxError: There is none, or it is ambiguous.
    """
    files = read_code(run.output_dir / "code")
    if asked is None and PREDICT in files:
        return PREDICT, True
    books = [name for name in files if name.endswith(".ipynb")]
    if asked is None and len(books) == 1 and not any(name.endswith(".py") for name in files):
        return books[0], False
    return entry_of(files, asked), False


def copy_programs(run: Run, output: Path, entry: str) -> str:
    """Copy programs and small settings, no data: predictions or models that were stored do not count as code.

    Returns:
        The file to run: of a notebook, the script that its cells make.
    """
    code = output / "code"
    for name, text in read_code(run.output_dir / "code").items():
        if name.endswith(_PROGRAMS) and (name.endswith(_PROGRAMS[:5]) or len(text) <= _MAX_CONFIG):
            place = code / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8", errors="replace")
    if not entry.endswith(".ipynb"):
        return entry
    script = entry.removesuffix(".ipynb") + ".py"
    (code / script).write_text(cells(code / entry), encoding="utf-8")
    return script


def copy_output(run: Run, output: Path) -> None:
    """Copy everything but submissions, for an inference entry point; links are not followed."""
    for source in sorted(run.output_dir.iterdir()):
        if source.is_symlink() or source.name.startswith("submission"):
            continue
        if source.is_dir():
            shutil.copytree(source, output / source.name, symlinks=True, dirs_exist_ok=True, ignore=_special)
        elif source.is_file():
            shutil.copyfile(source, output / source.name)


def _special(folder: str, names: list[str]) -> list[str]:
    """Links and what is neither a file nor a folder."""
    paths = {name: Path(folder, name) for name in names}
    return [name for name, path in paths.items() if path.is_symlink() or not (path.is_file() or path.is_dir())]


def cells(path: Path) -> str:
    """The code of a notebook, without commands of the shell and of IPython.

    Raises:
        MlereduxError: It is not a notebook.
    """
    try:
        sources = [
            "".join(cell["source"])
            for cell in json.loads(path.read_text("utf-8"))["cells"]
            if cell["cell_type"] == "code"
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise MlereduxError(f"{path.name} is not a notebook ({type(error).__name__}).") from None
    lines = "\n\n".join(sources).splitlines()
    return "\n".join("pass" if line.startswith(("!", "%")) else line for line in lines) + "\n"
