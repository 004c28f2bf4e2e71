"""Real Kaggle data prepare to the published checksums."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import mleredux_competition_mlebench
import pytest
from mleredux._core.plugins.loader import resolve

REFS = {ref.id: ref for ref in mleredux_competition_mlebench.mleredux_register_tasks()}
COMPETITIONS = (
    "detecting-insults-in-social-commentary",
    "leaf-classification",
    "nomad2018-predict-transparent-conductors",
    "random-acts-of-pizza",
    "spaceship-titanic",
)


@pytest.mark.shared
@pytest.mark.parametrize("competition", COMPETITIONS)
def test_published_checksums(competition: str, shared: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(shared / "data" / "kaggle" / competition / f"{competition}.zip") as archive:
        archive.extractall(tmp_path / "raw")
    task = resolve(REFS[competition])
    task.prepare(tmp_path / "raw", tmp_path / "public", tmp_path / "private")
    for side in ("public", "private"):
        assert task.checksums[side]
        for name, md5 in task.checksums[side].items():
            assert hashlib.md5((tmp_path / side / name).read_bytes()).hexdigest() == md5, f"{side}/{name}"
