"""Prepared data tells nothing by its files: an agent that opens none of them stays at chance."""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mleredux_competition_mlebench
import numpy as np
import pytest
from mleredux._core.data import DataStore, Prepared
from mleredux._core.models import Submission, Task
from mleredux._core.models.task import Metric
from mleredux._core.neutral import TIME_NS
from mleredux._core.plugins.loader import resolve
from mleredux.errors import DataError
from mleredux_audit_leaks.audit import audit
from mleredux_competition_mlebench.blocks import Array, Preparation, Workspace, Zip, one_pass, write_tars
from mleredux_competition_mlebench.blocks.declare import private

sys.path.insert(0, str(Path(__file__).parent))
from bystander import Sight, look

CLASSES, EACH = 20, 30
LIMIT = 5.0
"""Standard deviations; chance passes them once in 3 million normal tries."""
REFS = {ref.id: ref for ref in mleredux_competition_mlebench.mleredux_register_tasks()}


def prepare(task: Task, data: Path, source: Path, **options: Any) -> Prepared:
    def preparer(task: Task, raw: Path, public: Path, private: Path) -> bool:
        assert task.prepare is not None
        task.prepare(raw, public, private)
        return True

    return DataStore(data).prepare(task, preparer, source=source, **{"check_space": False, **options})


def times(folder: Path) -> set[int]:
    return {
        time
        for path in (folder, *folder.rglob("*"))
        for time in (path.lstat().st_mtime_ns, path.lstat().st_atime_ns)
        if not path.is_dir() or time == path.lstat().st_mtime_ns  # listing a folder is an access
    }
