"""What Harbor's tests share."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a `python3` that has the requirements of verifiers, but nothing of mleredux: what is installed here
    for development is not imported.
    """
    folder = tmp_path_factory.mktemp("bare-python")
    script = f'#!/bin/sh\nPYTHONPATH=$PYTHONPATH:{sysconfig.get_path("purelib")} exec {sys.executable} -S "$@"\n'
    (folder / "python3").write_text(script)
    (folder / "python3").chmod(0o755)
    return folder
