"""Golden cases, each prepared once for all tests that use it."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import mleredux_competition_mlebench
import pytest
from mleredux._core.plugins.loader import resolve
from mleredux_competition_mlebench.blocks import Preparation

Cases = Callable[[Path], Path]


@pytest.fixture(scope="session")
def golden_case(tmp_path_factory: pytest.TempPathFactory) -> Cases:
    """From a golden case's folder to one with its `raw`, `public` and `private` files; they are only read."""
    refs = {ref.id: ref for ref in mleredux_competition_mlebench.mleredux_register_tasks()}

    @cache
    def prepared(case: Path) -> Path:
        task = resolve(refs[case.name])
        assert isinstance(task.prepare, Preparation)
        overrides = json.loads((case / "expected.json").read_text()).get("overrides") or {}
        folder = tmp_path_factory.mktemp("case")
        with zipfile.ZipFile(case / "raw.zip") as packed:
            packed.extractall(folder / "raw")
        prepare = task.prepare.with_settings(test_size=overrides.get("test_size"))
        prepare(folder / "raw", folder / "prepared" / "public", folder / "prepared" / "private")
        return folder

    return prepared
