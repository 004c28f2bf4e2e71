"""What commands must not import, as a run would cost several times as much."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

HEAVY = {"alembic", "cryptography", "docker", "fastapi", "httpx", "jsonschema", "matplotlib", "mlflow", "nbformat"} | {
    *("numpy", "pandas", "pygments", "rich", "scipy", "sklearn", "sqlalchemy", "structlog", "uvicorn")
}


def imported(*command: str) -> set[str]:
    """Packages that Python imports in the command's own process."""
    done = subprocess.run([sys.executable, "-X", "importtime", *command], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return set(re.findall(r"^import time:.*\| +(\w+)", done.stderr, re.MULTILINE))


def test_a_run_imports_nothing_heavy_in_the_command_itself(tmp_path: Path) -> None:
    folders = ("--runs-dir", str(tmp_path / "runs"), "--data-dir", str(tmp_path / "data"))
    run = ("run", "digits", "--agent", "dummy", "--sandbox", "process", "--json", *folders)
    imported("-m", "mleredux", *run)  # prepares the data
    modules = imported("-m", "mleredux", *run)
    assert "mleredux" in modules and "mleredux_artifact_reports" in modules
    assert not modules & HEAVY


def test_a_server_takes_its_address_before_its_libraries_are_imported() -> None:
    assert not imported("-c", "import mleredux_server.cli.serve, mleredux_server.operations.address") & HEAVY
