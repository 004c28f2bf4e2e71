"""Agents that know nothing of Podman run in it to a graded report; in Docker, their own tests run them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import mleredux
import pytest

MANIFEST = """\
[agent]
id = "copier"
version = "1"
command = ["python", "/opt/agent/solve.py"]

[build]
python = ["-r requirements.txt"]

[smoke]
time_limit = "1m"
"""
SOLVE = """\
import os, shutil
shutil.copyfile(os.environ["MLEREDUX_DATA_DIR"] + "/sample_submission.csv", os.environ["MLEREDUX_SUBMISSION"])
"""


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True)


@pytest.fixture
def repository(own_cache: Path, tmp_path: Path) -> str:
    """A repository with an agent in it, as a reference."""
    folder = tmp_path / "agent"
    folder.mkdir()
    for name, text in {"mleredux-agent.toml": MANIFEST, "solve.py": SOLVE, "requirements.txt": ""}.items():
        (folder / name).write_text(text)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    return f"repo:{folder}@main"


@pytest.mark.engines("podman")
def test_agents_run_to_a_graded_report(engine: str, repository: str, mleredux_home: Path) -> None:
    for agent in ("dummy", repository):
        run = mleredux.run("digits", agent, sandbox=engine, time_limit=120)
        assert str(run.state) == "done", f"{run.message}\n{run.agent_log.read_text(errors='replace')}"
        assert run.report is not None and run.report.valid_submission and run.report.ledger.isolated
