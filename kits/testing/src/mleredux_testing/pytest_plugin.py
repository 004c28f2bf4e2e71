"""Fixtures for tests of mleredux and its plugins; pytest finds them where mleredux is installed.

`MLEREDUX_REQUIRE=docker,podman,apptainer,shared,postgresql,slurm,ray,nginx,faketime,chromium,validators,openid,root`
turns skips for want of an engine, of the shared folder, of PostgreSQL's or Slurm's programs, of Ray, of nginx, of
libfaketime, of Chromium, of other systems' validators, of an OpenID provider or of what only root may do into failures.
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
"""The base image for agents in tests: `.ci/base-image` makes it."""
NO_ENGINE = {
    "DOCKER_HOST": "unix:///nonexistent.sock",
    "CONTAINER_HOST": "unix:///nonexistent.sock",
    "MLEREDUX_BLOCK_PLUGINS": "apptainer",
}
"""Variables with which a program finds no container engine; Apptainer, which has no service, is not loaded."""


def pytest_configure(config: pytest.Config) -> None:
    """Make the markers known, and signals work in programs that tests start.

    A shell has what it starts in the background ignore Ctrl-C, and `nohup` has it ignore SIGHUP. Programs inherit that,
    but no handler: with one that does nothing, the tests still ignore SIGHUP, and the programs that they start do not.
    A process that only starts workers hands down to them what it ignores.
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


def skip_or_fail(what: str, reason: str) -> NoReturn:
    """Skip the test, or fail it where `MLEREDUX_REQUIRE` names what is missing."""
    if what in os.environ.get(REQUIRE_VARIABLE, "").split(","):
        pytest.fail(f"{REQUIRE_VARIABLE} names {what}, but {reason}", pytrace=False)
    pytest.skip(reason)


def validator(name: str = "validators") -> Path:
    """The folder that `.ci/validators` makes for other systems' programs.

    Args:
        name: `openenv`, `scout` or `verifiers`: an environment; `validators`: modules alone.
    """
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / f"mleredux-{name}"
    if not folder.is_dir():
        skip_or_fail("validators", f"there is no {folder} (`.ci/validators` makes it)")
    return folder


@pytest.fixture(scope="session")
def shared(pytestconfig: pytest.Config) -> Path:
    """The folder of shared facts, golden cases and data."""
    folder = Path(os.environ.get(SHARED_VARIABLE, pytestconfig.rootpath.parent / "shared"))
    if not (folder / "facts").is_dir():
        skip_or_fail("shared", f"the shared folder {folder} is absent (name it in {SHARED_VARIABLE})")
    return folder


@pytest.fixture
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, in which there is only the index of plugins: making that takes seconds."""
    usual = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mleredux" / "index"
    usual.mkdir(parents=True, exist_ok=True)
    own = tmp_path_factory.mktemp("cache") / "mleredux"
    own.mkdir()
    (own / "index").symlink_to(usual)
    monkeypatch.setenv("XDG_CACHE_HOME", str(own.parent))
    return own


@pytest.fixture(scope="session")
def root() -> None:
    """Root privileges, as for mounting."""
    if os.geteuid() != 0:
        skip_or_fail("root", "the tests don't run as root")


@pytest.fixture(scope="session")
def docker_engine() -> None:
    """A Docker engine that answers."""
    try:
        asked = subprocess.run(
            ["docker", "version", "--format", "{{.Server.Version}}"], capture_output=True, timeout=30
        )
        answers = asked.returncode == 0
    except (OSError, subprocess.SubprocessError):
        answers = False
    if not answers:
        skip_or_fail("docker", "no Docker engine answers")


@pytest.fixture(scope="session")
def docker_base_image(docker_engine: None) -> Iterator[str]:
    """A base image for agents, which is there: that of `MLEREDUX_BASE_IMAGE`, else what `.ci/base-image` makes."""
    if subprocess.run(["docker", "image", "inspect", BASE_IMAGE], capture_output=True, timeout=60).returncode:
        skip_or_fail("docker", f"there is no base image {BASE_IMAGE} (make one with `.ci/base-image`)")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLEREDUX_BASE_IMAGE", BASE_IMAGE)
        yield BASE_IMAGE


@pytest.fixture(scope="session")
def apptainer_base_image() -> str:
    """Apptainer's base image for agents: an archive of the others', which `.ci/apptainer` makes."""
    archive = Path("/var/cache/mleredux", f"{re.sub('[/:]', '_', BASE_IMAGE)}.tar")
    if not shutil.which("apptainer") or not archive.exists():
        skip_or_fail("apptainer", "Apptainer is not there with the base image (get both with `.ci/apptainer`)")
    return f"docker-archive:{archive}"


@pytest.fixture(scope="session", autouse=True)
def _disks_of_killed_programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Unmount what runs of killed programs left in this session's folder, and in those that pytest could not remove."""
    from mleredux._core.sandboxes.mounts import unmount_below

    yield
    base = tmp_path_factory.getbasetemp()
    for folder in (base, *base.parent.glob("garbage-*"), *base.parents[1].glob("garbage-*")):
        unmount_below(folder)


@pytest.fixture
def mleredux_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of the test's own for runs and data, and a catalogue of its own."""
    from mleredux._core.plugins.catalogue import set_current

    monkeypatch.setenv("MLEREDUX_RUNS_DIR", str(tmp_path / "runs"))
    monkeypatch.setenv("MLEREDUX_DATA", str(tmp_path / "data"))
    set_current(None)
    yield tmp_path
    set_current(None)
