"""Run a notebook as Jupyter does, in an agent's environment, where mleredux is not installed; executed by `python -c`.

Its arguments are `[--here] NOTEBOOK [ARGUMENT…]`. With nbclient and ipykernel, a kernel executes the cells, and the
executed notebook is written to `$MLEREDUX_OUTPUT_DIR/logs`; without them, or with `--here`, IPython executes the cells
in this process. Modules are imported from the working directory, then from the notebook's folder; `%run` searches both,
too.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import json
import logging
import os
import re
import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple, cast

COLOURS = re.compile(r"\x1b\[[0-9;]*m")
START_SECONDS, OUTPUT_SECONDS = 600, 60
RUN_BESIDE = """
def beside(line, run=get_ipython().find_line_magic("run"), folder={folder!r}):
    from contextlib import suppress
    from pathlib import Path
    from IPython.utils.path import get_py_filename
    def find(name):
        for place in (Path(name), Path(folder, name)):
            with suppress(OSError):
                return get_py_filename(str(place))
        return get_py_filename(name)
    return run(line, file_finder=find)
get_ipython().register_magic_function(beside, magic_name="run")
del beside
"""


class Failure(NamedTuple):
    """The error that ended a notebook."""

    cell: int
    kind: str
    message: str


def main(arguments: list[str]) -> int | str:
    """Run a notebook; return the exit code, or a sentence about why it failed."""
    here = arguments[0] == "--here"
    path, *others = arguments[here:]
    place = Path(path)
    try:
        book = {"nbformat": 4, "nbformat_minor": 4, **json.loads(place.read_text(encoding="utf-8-sig"))}
        book["metadata"] = book.get("metadata") or {}
        if sheets := book.pop("worksheets", None):  # version 3
            book["cells"] = [
                {"cell_type": "code" if code is not None else "markdown", "source": code or ""}
                for code in (cell.get("input") for sheet in sheets for cell in sheet["cells"])
            ]
            book["nbformat"] = book["nbformat_minor"] = 4
        about = {name: book["metadata"].get(name) or {} for name in ("kernelspec", "language_info")}
        book["cells"] = [unexecuted(cell) for cell in book["cells"]]
        tags = [frozenset(cell["metadata"].get("tags", ())) for cell in book["cells"]]
        language = about["kernelspec"].get("language") or about["language_info"].get("name") or "python"
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        return f"{place.name} is not a notebook of version 4 ({type(error).__name__}); save it again in Jupyter."
    python = language.lower() == "python"
    folder = str(place.absolute().parent)
    # `exit()` must end the program, not only stop the kernel.
    start = f"__import__('sys').argv[:] = {[path, *others]!r}; exit = quit = __import__('sys').exit; "
    start += f"__import__('sys').path[:0] = ['', {folder!r}]" + RUN_BESIDE.format(folder=folder)
    # Programs that a cell starts write to this process's output, which the kernel would repeat.
    settings = (f"exec_lines={start}", "log_level=CRITICAL", "capture_fd_output=False")
    options = [f"--IPKernelApp.{setting}" for setting in settings if python]
    kernel = "python3" if python else about["kernelspec"].get("name", language)
    if not here and has("nbclient") and (has("ipykernel") or not python):
        failure = run_in_kernel(book, place.name, kernel, options)
    elif python and has("IPython"):
        failure = run_in_process(list(zip(book["cells"], tags, strict=True)), start)
    else:
        wanted = "nbclient and ipykernel, or IPython" if python else f"nbclient and the kernel {kernel}"
        return f"{place.name} needs {wanted}, which this environment lacks: install them, or convert it to a script."
    if failure is None or (failure.kind == "SystemExit" and failure.message in ("", "0", "None")):
        return 0
    return f"Error in cell {failure.cell} of {place.name}: {failure.kind}: {failure.message}".rstrip(": ")


def unexecuted(cell: dict[str, Any]) -> dict[str, Any]:
    """Return a cell without output, and with all fields that nbformat expects."""
    plain = {**cell, "metadata": cell.get("metadata") or {}, "source": "".join(cell["source"])}
    return {**plain, "outputs": [], "execution_count": None} if cell["cell_type"] == "code" else plain


def has(package: str) -> bool:
    """Return whether this environment has a package."""
    return importlib.util.find_spec(package) is not None


def run_in_kernel(content: dict[str, Any], name: str, kernel: str, options: list[str]) -> Failure | None:
    """Execute the cells in a kernel, print their output as it arrives, and save the notebook after each cell."""
    from jupyter_client.kernelspec import NoSuchKernel
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, DeadKernelError

    number, nbformat = 1, cast("Any", importlib.import_module("nbformat"))
    kept = Path(os.environ.get("MLEREDUX_OUTPUT_DIR", ""), "logs", name)

    class Client(NotebookClient):
        def output(self, outs: list[Any], msg: dict[str, Any], display_id: str | None, cell_index: int) -> Any:
            content = msg["content"]
            if msg["msg_type"] == "stream":
                print(content["text"], end="", file=getattr(sys, content["name"]), flush=True)
            elif msg["msg_type"] == "error":
                print(COLOURS.sub("", "\n".join(content["traceback"])), file=sys.stderr, flush=True)
            elif text := content.get("data", {}).get("text/plain"):
                print(text, flush=True)
            return super().output(outs, msg, display_id, cell_index)

        async def async_execute_cell(self, cell: Any, cell_index: int, *arguments: Any, **named: Any) -> Any:
            nonlocal number
            number = cell_index + 1
            try:
                return await super().async_execute_cell(cell, cell_index, *arguments, **named)
            finally:
                if kept.parent.is_dir() and cell.cell_type == "code":
                    nbformat.write(book, f"{kept}.part")
                    Path(f"{kept}.part").replace(kept)

    book = nbformat.from_dict(content)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # a signal leaves tasks whose errors are never retrieved
    warnings.filterwarnings("ignore", module="nbformat")  # cells without ids, as in old notebooks
    seconds: dict[str, Any] = {"timeout": None, "startup_timeout": START_SECONDS, "iopub_timeout": OUTPUT_SECONDS}
    try:
        Client(book, kernel_name=kernel, extra_arguments=options, **seconds).execute()
    except CellExecutionError as error:
        return Failure(number, error.ename, error.evalue)
    except (DeadKernelError, AssertionError, asyncio.CancelledError):  # the remaining cells, if a signal ended it
        return Failure(number, "Killed", "the kernel was stopped or ran out of memory")
    except NoSuchKernel:
        return Failure(number, "Error", f"the kernel {kernel} is not installed")
    return None


def run_in_process(cells: list[tuple[dict[str, Any], frozenset[str]]], start: str) -> Failure | None:
    """Execute cells, each with its tags, with IPython in this process; the tags mean the same as to nbclient."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    class Shell(InteractiveShell):
        system = InteractiveShell.system_raw

        def enable_gui(self, gui: str | None = None) -> None:
            """Do nothing: windows can't be opened."""

    os.environ.setdefault("TERM", "dumb")  # no pager
    settings = {"InteractiveShell": {"colors": "nocolor"}, "HistoryManager": {"enabled": False}}
    shell = cast("Any", Shell).instance(config=Config(settings))
    shell.run_cell(start)
    for number, (cell, tags) in enumerate(cells, 1):
        executed = cell["cell_type"] == "code" and cell["source"].strip() and "skip-execution" not in tags
        result = shell.run_cell(cell["source"], store_history=True) if executed else None
        error = result and (result.error_before_exec or result.error_in_exec)
        sys.stdout.flush()
        if error and "raises-exception" not in tags:
            return Failure(number, type(error).__name__, str(error))
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
