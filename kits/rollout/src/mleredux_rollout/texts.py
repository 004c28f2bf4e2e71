"""The texts that an agent wrote and ran, as lines with their locations."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from mleredux import Run
from mleredux.errors import MlereduxError
from mleredux.plugin.files import IntakeLimits, open_below, readable_path, walk_files

from mleredux_rollout.models import Step

Kind = Literal["code", "action", "log"]
"""The kind of a text: the solution's code, an action of the rollout, or the log."""
MAX_TEXT = 1 << 20
"""Maximum number of bytes of a text."""
MAX_LOG = 4 << 20
MAX_LINE = 2_000
"""Maximum number of characters of a line."""
_LIMITS = IntakeLimits(files=2_000, file_bytes=MAX_TEXT, total_bytes=32 << 20)
_ENDINGS = (".py", ".ipynb", ".sh", ".r", ".R", ".jl")
_DEEPEST = 12


@dataclass(frozen=True)
class Text:
    """A text written by the agent.

    Attributes:
        where: A path in the run, or `rollout step 4`.
        kind: The solution's code, an action of the rollout (a command, code that was run), or the log.
    """

    where: str
    kind: Kind
    content: str
    """The text itself."""

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield line numbers, counted from 1, and lines, which are truncated if they are very long."""
        for number, line in enumerate(self.content.splitlines(), start=1):
            yield number, line[:MAX_LINE]


def texts_of(run: Run) -> list[Text]:
    """Return the agent's code, the actions of its rollout, and its log."""
    return [*code_of(run), *_actions(run), *_log(run)]


def code_of(run: Run, folder: Path | None = None) -> list[Text]:
    """Return the programs in a folder, by default the output folder; links are not followed.

    Args:
        run: The run.
        folder: The folder; None: the output folder of the run.
    """
    files = read_files(folder or run.output_dir, _LIMITS, _ENDINGS)
    return [Text(f"output/{readable_path(os.fsencode(name))}", "code", plain_code(name, data)) for name, data in files]


def read_files(folder: Path, limits: IntakeLimits, endings: tuple[str, ...] = ("",)) -> Iterator[tuple[str, bytes]]:
    """Yield the path and content of each regular file in a folder of an agent that is within the limits.

    Args:
        folder: The folder; links in it are not followed.
        limits: Limits on the files; the content of a file that grows is cut off at `limits.file_bytes`.
        endings: Endings of the paths to read.
    """
    for item in walk_files(folder, limits):
        name = os.fsdecode(item.path)
        if item.reason is None and name.endswith(endings):
            with contextlib.suppress(OSError):  # deleted, or replaced by a link
                with open_below(folder, name) as file:
                    data = file.read(limits.file_bytes)
                yield name, data


def parse_python(text: str) -> ast.Module | None:
    """Return the syntax tree of a program; None if it can't be parsed. Warnings about its syntax are ignored."""
    with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)
    return None


def plain_code(name: str, data: bytes) -> str:
    """Return a program as text; for a notebook, the code of its cells.

    Args:
        name: The file name, which distinguishes notebooks from other programs.
        data: The content of the file.
    """
    return "\n".join(code_cells(name, data))


def code_cells(name: str, data: bytes) -> list[str]:
    """Return the code of each cell of a notebook; for any other program, its text."""
    content = data.decode("utf-8", "replace")
    if not name.endswith(".ipynb"):
        return [content]
    with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):
        cells = json.loads(content)["cells"]
        return ["".join(cell["source"]) for cell in cells if cell.get("cell_type") == "code"]
    return [content]


def notebook_runner() -> str:
    """Return the program that runs a notebook as Jupyter does, for `python -c` in an environment without mleredux.

    Its arguments are the notebook, followed by the arguments of the notebook. `--here` before them executes the cells
    in the runner's own process, so that audit hooks and changes of the working directory apply.
    """
    return resources.files(__package__).joinpath("notebook.py").read_text(encoding="utf-8")


def steps_of(run: Run) -> Sequence[Step]:
    """Return the steps of a run's rollout; none if there is none, or it can't be read."""
    with contextlib.suppress(MlereduxError, ValueError):
        return run.rollout.steps if run.rollout else ()
    return ()


def _actions(run: Run) -> Iterator[Text]:
    for step in steps_of(run):
        for call in step.tool_calls or ():
            content = "\n".join(_strings(call.arguments))
            if content.strip():
                yield Text(f"rollout step {step.step_id}", "action", content[:MAX_TEXT])


def _strings(value: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth < _DEEPEST and isinstance(value, dict):
        for item in value.values():
            yield from _strings(item, depth + 1)
    elif depth < _DEEPEST and isinstance(value, list):
        for item in value:
            yield from _strings(item, depth + 1)


def _log(run: Run) -> Iterator[Text]:
    if run.agent_log.is_file() and not run.agent_log.is_symlink():
        with run.agent_log.open("rb") as file:
            yield Text("logs/agent.log", "log", file.read(MAX_LOG).decode("utf-8", "replace"))
