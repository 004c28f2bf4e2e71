"""Bundles of runs received from another user: files that would fill memory or disk are refused with one sentence."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import mleredux
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from mleredux._core.store import Run
from mleredux.errors import MlereduxError
from mleredux_audit_bundle.archive import write_bundle

KINDS: dict[str, Callable[[Path], object]] = {
    "sparse": lambda path: os.truncate(path, 1 << 40),
    "a pipe": lambda path: (path.unlink(), os.mkfifo(path)),
    "a link": lambda path: (path.rename(path.with_name("moved")), path.symlink_to("moved")),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a run that has ended."""
    home = tmp_path_factory.mktemp("received")
    return Path(mleredux.run("wine", agent="dummy", runs_dir=home / "runs", data_dir=home / "data").path)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["run.json", "report.json", "scores.json", "submissions/0001.csv"])
@pytest.mark.parametrize("submissions", [True, False])
def test_files_of_a_received_run_are_bounded(
    folder: Path, tmp_path: Path, name: str, kind: str, submissions: bool
) -> None:
    content = (folder / name).read_bytes()
    KINDS[kind](folder / name)
    try:
        with pytest.raises(MlereduxError) as error:
            write_bundle([Run(folder)], Ed25519PrivateKey.generate(), tmp_path / "b.zip", submissions=submissions)
    finally:
        (folder / name).unlink()
        (folder / name).write_bytes(content)
        (folder / name).with_name("moved").unlink(missing_ok=True)
    assert "\n" not in error.value.message and not list(tmp_path.iterdir())
