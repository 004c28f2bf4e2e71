"""An agent of an obfuscated run reads all that it can, and finds the task's name nowhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from mleredux._core.data import DataStore
from mleredux._core.pipeline import Pipeline
from mleredux._core.plugins import Catalogue
from mleredux._core.store import Run, RunStore
from mleredux.models import State
from mleredux_support.plans import plan_of
from mleredux_testing.toys import TOY_PLUGIN

pytestmark = pytest.mark.attack

NAMES = (b"quetzal", b"resplendent")
PLUGIN = Path(__file__).with_name("hidden_task.py")


def read_all(sandbox: str, home: Path, runs: str) -> tuple[Run, bytes]:
    """A run of the reader, and what it saw."""
    home.chmod(0o755)
    catalogue = Catalogue(load=[TOY_PLUGIN, str(PLUGIN)])
    store, data = RunStore(home / runs), DataStore(home / "data")
    planned = plan_of(catalogue, "quetzal-nesting", "reader", sandbox=sandbox, obfuscated=True)
    run = store.create(planned, data.path)
    Pipeline(store, catalogue, data).execute([run])
    assert run.state is State.DONE, f"{run.message}: {run.agent_log.read_text()}"
    seen = (run.output_dir / "seen").read_bytes()
    assert b"well-formed" in seen and b"mountinfo" in seen and len(seen) > 10_000
    return run, seen


def found(seen: bytes) -> list[bytes]:
    return [line[:300] for line in seen.lower().splitlines() if any(name in line for name in NAMES)]


def test_a_container_names_an_obfuscated_task_nowhere(engine: str, tmp_path: Path) -> None:
    run, seen = read_all(engine, tmp_path, "runs of quetzal" if os.geteuid() == 0 else "runs")
    assert not found(seen)
    assert not run.report.ledger.notes


@pytest.mark.parametrize("links", [False, True], ids=["mounted", "linked"])
def test_a_process_finds_the_name_in_none_of_what_it_is_given(
    tmp_path: Path, links: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if links:
        monkeypatch.setattr("mleredux._core.sandboxes.volume.mount_shown", _refuse)
    run, seen = read_all("process", tmp_path, "runs")
    assert not found(seen)
    assert not (run.path / ".data").exists()
    prepared = DataStore(tmp_path / "data").path
    assert all(path.stat().st_nlink == 1 for path in prepared.rglob("*.csv")), "the links are gone"


def _refuse(*_paths: Path) -> None:
    raise OSError("not here")
