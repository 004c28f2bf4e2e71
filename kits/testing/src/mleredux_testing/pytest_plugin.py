"""Fixtures for tests of mleredux and its plugins; pytest loads them if mleredux is installed.

`MLEREDUX_REQUIRE=docker,podman,apptainer,shared,postgresql,slurm,ray,nginx,faketime,chromium,validators,openid,root`
turns skips into failures if an engine, the shared folder, PostgreSQL's or Slurm's programs, Ray, nginx, libfaketime,
Chromium, other systems' validators, an OpenID provider or root privileges are missing.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

REQUIRE_VARIABLE = "MLEREDUX_REQUIRE"
SHARED_VARIABLE = "MLEREDUX_SHARED"
BASE_IMAGE = os.environ.get("MLEREDUX_BASE_IMAGE") or "mleredux/debian-python:trixie"
"""The base image for agents in tests, created by `.ci/base-image`."""
NO_ENGINE = {
    "DOCKER_HOST": "unix:///nonexistent.sock",
    "CONTAINER_HOST": "unix:///nonexistent.sock",
    "MLEREDUX_BLOCK_PLUGINS": "apptainer",
}
"""Variables that hide all container engines from a program; Apptainer, which has no service, is not loaded."""


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, and make signals work in programs started by tests.

    Background jobs of a shell ignore Ctrl-C, and programs started by `nohup` ignore SIGHUP. Child processes inherit
    ignored signals, but not handlers: with a handler that does nothing, the tests still ignore SIGHUP, but programs
    started by them do not. A process that only starts workers passes its ignored signals on to them.
    """
    executes = hasattr(config, "workerinput") or not config.getoption("numprocesses", None)
    if executes and threading.current_thread() is threading.main_thread():
        handlers = {signal.SIGHUP: lambda *_: None, signal.SIGINT: signal.default_int_handler}
        for number, handler in handlers.items():
            if signal.getsignal(number) == signal.SIG_IGN:
                signal.signal(number, handler)
    config.addinivalue_line("markers", "docker: needs a Docker engine")
    config.addinivalue_line("markers", "shared: needs the folder of shared facts and data")
    config.addinivalue_line("markers", "postgresql: needs PostgreSQL's programs")
    config.addinivalue_line("markers", "slurm: needs Slurm's programs")
    config.addinivalue_line("markers", "ray: needs Ray in a separate environment")
    config.addinivalue_line("markers", "faketime: needs libfaketime")
    config.addinivalue_line("markers", "chromium: needs Chromium")
    config.addinivalue_line("markers", "slow: takes more than ten seconds")


def skip_or_fail(requirement: str, reason: str) -> NoReturn:
    """Skip the test, or fail it if `MLEREDUX_REQUIRE` lists the missing requirement."""
    if requirement in os.environ.get(REQUIRE_VARIABLE, "").split(","):
        pytest.fail(f"{REQUIRE_VARIABLE} names {requirement}, but {reason}", pytrace=False)
    pytest.skip(reason)


def validator(name: str = "validators") -> Path:
    """Return the folder that `.ci/validators` creates for other systems' programs.

    Args:
        name: `openenv`, `scout` or `verifiers`: an environment; `validators`: only modules.
    """
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / f"mleredux-{name}"
    if not folder.is_dir():
        skip_or_fail("validators", f"there is no {folder} (`.ci/validators` makes it)")
    return folder


@pytest.fixture(scope="session")
def shared(pytestconfig: pytest.Config) -> Path:
    """Return the folder of shared facts, golden cases and data."""
    folder = Path(os.environ.get(SHARED_VARIABLE, pytestconfig.rootpath.parent / "shared"))
    if not (folder / "facts").is_dir():
        skip_or_fail("shared", f"the shared folder {folder} does not exist (specify it in {SHARED_VARIABLE})")
    return folder


@pytest.fixture
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a cache for this test that contains only the index of plugins, which takes seconds to create."""
    usual = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mleredux" / "index"
    usual.mkdir(parents=True, exist_ok=True)
    own = tmp_path_factory.mktemp("cache") / "mleredux"
    own.mkdir()
    (own / "index").symlink_to(usual)
    monkeypatch.setenv("XDG_CACHE_HOME", str(own.parent))
    return own


@pytest.fixture(scope="session")
def root() -> None:
    """Require root privileges, for example for mounting."""
    if os.geteuid() != 0:
        skip_or_fail("root", "the tests don't run as root")


@pytest.fixture(scope="session")
def docker_engine() -> None:
    """Require a Docker engine that responds."""
    try:
        process = subprocess.run(
            ["docker", "version", "--format", "{{.Server.Version}}"], capture_output=True, timeout=30
        )
        answers = process.returncode == 0
    except (OSError, subprocess.SubprocessError):
        answers = False
    if not answers:
        skip_or_fail("docker", "no Docker engine responds")


@pytest.fixture(scope="session")
def docker_base_image(docker_engine: None) -> Iterator[str]:
    """Yield an existing base image for agents: `MLEREDUX_BASE_IMAGE`, else the one created by `.ci/base-image`."""
    if subprocess.run(["docker", "image", "inspect", BASE_IMAGE], capture_output=True, timeout=60).returncode:
        skip_or_fail("docker", f"there is no base image {BASE_IMAGE} (make one with `.ci/base-image`)")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLEREDUX_BASE_IMAGE", BASE_IMAGE)
        yield BASE_IMAGE


@pytest.fixture(scope="session")
def apptainer_base_image() -> str:
    """Return Apptainer's base image for agents: an archive of the others' base image, created by `.ci/apptainer`."""
    archive = Path("/var/cache/mleredux", f"{re.sub('[/:]', '_', BASE_IMAGE)}.tar")
    if not shutil.which("apptainer") or not archive.exists():
        skip_or_fail("apptainer", "Apptainer or its base image is missing (get both with `.ci/apptainer`)")
    return f"docker-archive:{archive}"


@pytest.fixture(scope="session", autouse=True)
def _disks_of_killed_programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Unmount disks of killed programs' runs in this session's folder, and in earlier ones that pytest could not
    remove.
    """
    from mleredux._core.sandboxes.mounts import unmount_below

    yield
    base = tmp_path_factory.getbasetemp()
    for folder in (base, *base.parent.glob("garbage-*"), *base.parents[1].glob("garbage-*")):
        unmount_below(folder)


@pytest.fixture
def mleredux_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a folder for runs and data of this test, with a separate catalogue."""
    from mleredux._core.plugins.catalogue import set_current

    monkeypatch.setenv("MLEREDUX_RUNS_DIR", str(tmp_path / "runs"))
    monkeypatch.setenv("MLEREDUX_DATA_ROOT", str(tmp_path / "data"))
    set_current(None)
    yield tmp_path
    set_current(None)
