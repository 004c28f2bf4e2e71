"""The line of a log that tells why an agent failed."""

from __future__ import annotations

from pathlib import Path

import pytest
from mleredux._core.masks import Mask
from mleredux._core.stages.failures import failure_line

TRACEBACK = """\
epoch 1
Traceback (most recent call last):
  File "a.py", line 1, in <module>
KeyError: 'x'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "a.py", line 3, in <module>
    fit()
ValueError: the key hunter2hunter2 is wrong
cleaning up
"""

IN_LIBRARY = """\
Traceback (most recent call last):
  File "/opt/agent/a.py", line 3, in <module>
    model.fit(X)
  File "/opt/venv/lib/python3.11/site-packages/sklearn/base.py", line 99, in fit
    raise ValueError("bad shape")
ValueError: bad shape
"""
SYNTAX = """\
  File "/opt/agent/b c.py", line 2
    x = (fit(
        ^
SyntaxError: '(' was never closed
"""


@pytest.mark.parametrize(
    ("log", "line"),
    [
        (TRACEBACK, "ValueError: the key ************** is wrong (a.py, line 3: fit())."),
        (IN_LIBRARY, "ValueError: bad shape (a.py, line 3: model.fit(X))."),
        (SYNTAX, "SyntaxError: '(' was never closed (b c.py, line 2: x = (fit()."),
        (IN_LIBRARY.replace("/opt/agent/a.py", "<string>"), "ValueError: bad shape."),
        (IN_LIBRARY.replace("    model.fit(X)\n", ""), "ValueError: bad shape (a.py, line 3)."),
        ("sh: 1: claude: not found\nbye\n", "sh: 1: claude: not found."),
        ("Killed\n", "Killed."),
        ("working\nthe end\n", "the end."),
        ("bad \x1b[31mline\n", "bad  [31mline."),
        ("\n", None),
    ],
)
def test_the_line_that_matters_is_found(tmp_path: Path, log: str, line: str | None) -> None:
    path = tmp_path / "agent.log"
    path.write_text(log)
    assert failure_line(path, Mask(["hunter2hunter2"])) == line


@pytest.mark.parametrize("module", ["pandas", "sklearn.ensemble", "my_module"])
def test_a_missing_package_says_how_to_declare_it(tmp_path: Path, module: str) -> None:
    path = tmp_path / "agent.log"
    path.write_text(f"Traceback (most recent call last):\n  x\nModuleNotFoundError: No module named '{module}'\n")
    told = failure_line(path, Mask([]))
    assert told is not None and f"'{module}'. Declare the packages that the agent needs" in told
    assert "dependencies" in told and "requirements.txt" in told


def test_a_missing_file_says_where_the_data_is(tmp_path: Path) -> None:
    path = tmp_path / "agent.log"
    path.write_text("Traceback (most recent call last):\n  x\nFileNotFoundError: no 'train.csv'\n")
    told = failure_line(path, Mask([]))
    assert told is not None and "'train.csv'. The data is in the folder $MLEREDUX_DATA_DIR" in told
    assert failure_line(tmp_path / "absent", Mask([])) is None
