"""Real runs of small agents on a starter task, in the process sandbox."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from mleredux._core.data import DataStore
from mleredux._core.pipeline import Pipeline
from mleredux._core.plugins import Catalogue
from mleredux._core.plugins.catalogue import set_current
from mleredux._core.store import Run, RunStore
from mleredux_support.plans import plan_of

HEAD = "import os, random, sys, time\ndata, out = os.environ['MLEREDUX_DATA_DIR'], os.environ['MLEREDUX_OUTPUT_DIR']\n"
PLUGIN = """\
from mleredux import Agent, hookimpl

@hookimpl
def mleredux_register_agents():
    return [Agent(id=name, title=name, command=("python", "-c", code)) for name, code in {codes!r}.items()]
"""
WRITE_AND_RUN = HEAD + (
    "import subprocess\n"
    "for code in {solutions!r}:\n"
    "    open(out + '/code/solution.py', 'w').write(code)\n"
    "    subprocess.run([sys.executable, 'code/solution.py', data, os.environ['MLEREDUX_SUBMISSION']], check=True)\n"
    "    time.sleep({pause})\n"
)
RunAgent = Callable[..., Run]


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "runs")


@pytest.fixture
def run_agent(tmp_path: Path, store: RunStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunAgent]:
    """Return a function that runs an agent which writes several solutions and runs each."""

    def run(*solutions: str, task: str = "wine", pause: float = 2.5) -> Run:
        code = WRITE_AND_RUN.format(solutions=solutions, pause=pause if len(solutions) > 1 else 0)
        plugin = tmp_path / "writer_plugin.py"
        plugin.write_text(PLUGIN.format(codes={"writer": code}))
        catalogue = Catalogue(load=(str(plugin),))
        set_current(catalogue)
        data = DataStore(tmp_path / "data")
        made = store.create(plan_of(catalogue, task, "writer", sandbox="process"), data.path)
        return Pipeline(store, catalogue, data).execute([made])[0]

    monkeypatch.setenv("MLEREDUX_DATA_ROOT", str(tmp_path / "data"))
    yield run
    set_current(None)
