"""Cells of notebooks: their tags, and the output of programs that they start, with and without a kernel."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mleredux_rollout import notebook_runner


def run(folder: Path, cells: list[dict[str, Any]], here: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a notebook as outside of pytest, whose variable changes how ipykernel captures output."""
    (folder / "book.ipynb").write_text(json.dumps({"cells": cells}))
    command = [sys.executable, "-c", notebook_runner(), *here, "book.ipynb"]
    env = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=300)


TAGGED = [
    ("code", "print('skipped')", ["skip-execution"]),
    ("raw", "not ( python", ["skip-execution"]),
    ("code", "1 / 0", ["raises-exception"]),
    ("code", "import subprocess\nsubprocess.run('echo child; echo error >&2; sleep 1', shell=True)", []),
    ("code", "print('after')", ["parameters"]),
]


@pytest.mark.parametrize("here", [[], ["--here"]], ids=["kernel", "process"])
def test_tags_of_cells_and_programs_that_they_start_are_treated_alike(tmp_path: Path, here: list[str]) -> None:
    cells = [{"cell_type": kind, "source": text, "metadata": {"tags": tags}} for kind, text, tags in TAGGED]
    ended = run(tmp_path, cells, here)
    lines = (ended.stdout + ended.stderr).splitlines()
    assert ended.returncode == 0, ended.stderr
    assert [lines.count(word) for word in ("skipped", "child", "error", "after")] == [0, 1, 1, 1], lines


@pytest.mark.parametrize("here", [[], ["--here"]], ids=["kernel", "process"])
def test_the_last_words_of_a_crash_are_shown(tmp_path: Path, here: list[str]) -> None:
    crash = "import os\nos.write(2, b'terminated\\n')\nos._exit(3)"
    ended = run(tmp_path, [{"cell_type": "code", "source": crash}], here)
    assert ended.returncode != 0 and ended.stderr.splitlines()[0] == "terminated", ended.stderr
