"""What stays on a machine after builds is removed: by `mleredux prune`, and old index files by themselves."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from mleredux._core.disuse import note_use
from mleredux._core.plugins.discovery import installation
from mleredux_support.commands import mleredux

DAY = 86400


def aged(path: Path, days: float) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.utime(path, (time.time() - days * DAY,) * 2)
    return path


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "mleredux"


def test_environments_that_no_run_used_for_long_are_removed(mleredux_home: Path, cache: Path) -> None:
    old, new = (aged(cache / "environments" / name / "complete", days) for name, days in (("old", 31), ("new", 29)))
    told = mleredux("prune", "--dry-run")
    assert told.code == 0 and "environments/old  20" in told.out and "Would remove 1 " in told.out and old.exists()
    told = mleredux("prune", "--json")
    assert [row["name"] for row in told.json["removed"]] == [str(old.parent)]
    assert not old.parent.exists() and new.exists()
    told = mleredux("prune", "--unused-since", "28d")
    assert "Removed 1 " in told.out and not new.parent.exists()


def test_images_of_an_engine_that_is_not_here_stay_noted(mleredux_home: Path, cache: Path) -> None:
    note_use("gone", "mleredux/mine:0123")
    (note,) = (cache / "images" / "gone").iterdir()
    aged(note, 40)
    told = mleredux("prune")
    assert told.code == 0 and "Removed 0 " in told.out and "sandbox gone does not work here" in told.err
    assert note.exists()


def test_a_new_index_removes_those_of_environments_that_are_gone(cache: Path) -> None:
    old, new = (aged(cache / "index" / f"plugins-{name}.json", days) for name, days in (("0a", 31), ("0b", 29)))
    installation().remember("plugins", {})
    assert not old.exists() and new.exists()
