"""A competition as a third party would add it: declared in a plugin file, and nothing said of techniques."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mleredux._core.data import DataStore, Prepared
from mleredux._core.plugins import Catalogue
from mleredux._core.plugins.catalogue import set_current
from mleredux._core.stages.prepare import prepare
from mleredux.models import Task

sys.path.insert(0, str(Path(__file__).parent))  # for technique_documents

PLUGIN = Path(__file__).with_name("shop_plugin.py")


@dataclass(frozen=True)
class Bench:
    """Tasks prepared in a folder of their own."""

    catalogue: Catalogue
    data: DataStore
    plugin: Path

    def task(self, name: str) -> Task:
        return self.catalogue.task(name)

    def prepare(self, name: str, **options: Any) -> Prepared:
        return prepare(self.task(name), self.catalogue, self.data, **options)


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # workers share the tasks, whose preparation takes long and is locked
    yield Bench(Catalogue(load=[str(PLUGIN)]), DataStore(folder / "techniques-data"), PLUGIN)
    set_current(None)


@pytest.fixture(scope="session")
def prepared(bench: Bench) -> Callable[[str], Prepared]:
    """The prepared files of a task."""
    return bench.prepare


@pytest.fixture
def cli(bench: Any, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The command line, with the third party's plugin and dedicated folders."""
    environment = {
        **os.environ,
        "MLEREDUX_DATA_ROOT": str(bench.data.path),
        "MLEREDUX_RUNS_DIR": str(tmp_path / "runs"),
    }

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "mleredux", "-p", str(bench.plugin), *arguments]
        return subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300)

    return call
