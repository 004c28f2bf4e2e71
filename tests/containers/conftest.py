"""Launches for tests: real folders, real images, real containers."""

from __future__ import annotations

import dataclasses
import os
import shlex
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from mleredux._core.plugins import current
from mleredux._core.protocols import BuildRequest, Built, Exit, Handle, Launch, Sandbox
from mleredux.errors import SandboxError
from mleredux.models import Agent, Build, Limits
from mleredux_sandbox_podman.doctor import try_container, working_options
from mleredux_sandbox_podman.engine import OPTIONS_VARIABLE, find_image
from mleredux_testing.pytest_plugin import BASE_IMAGE, skip_or_fail

OWNER = "tests-of-containers"
ENGINES = ("docker", "podman")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each test runs on each engine, or on those that its marker `engines` names."""
    if "engine" in metafunc.fixturenames:
        marked = metafunc.definition.get_closest_marker("engines")
        names = marked.args if marked else ENGINES
        engines = [pytest.param(name, marks=getattr(pytest.mark, name)) for name in names]
        metafunc.parametrize("engine", engines, scope="module", indirect=True)


@pytest.fixture(scope="module")
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    """An engine that answers and has its own base image: its name, which is its program's and its sandbox's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLEREDUX_BASE_IMAGE", request.getfixturevalue(f"{request.param}_base_image"))
        yield request.param


@pytest.fixture(scope="session")
def podman_base_image() -> Iterator[str]:
    """Podman with the base image, and the options with which containers run here."""
    try:
        image = find_image(BASE_IMAGE)
    except SandboxError as error:
        skip_or_fail("podman", str(error))
    if image is None:
        skip_or_fail("podman", f"Podman has no base image {BASE_IMAGE} (make one with `.ci/podman`)")
    options = os.environ.get(OPTIONS_VARIABLE) or working_options(image.id)
    if options is None:
        skip_or_fail("podman", f"no container runs: {try_container(image.id)}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(OPTIONS_VARIABLE, options)
        yield BASE_IMAGE


Program = Callable[..., str]


@pytest.fixture
def program(engine: str) -> Program:
    """`program("ps", "--all")`: what the engine's program prints."""

    def call(*arguments: str) -> str:
        options = shlex.split(os.environ.get("MLEREDUX_PODMAN_OPTIONS", "")) if engine == "podman" else []
        return subprocess.run([engine, *options, *arguments], capture_output=True, text=True, check=True).stdout

    return call


@pytest.fixture(scope="module")
def base(engine: str) -> str:
    """The base image."""
    return os.environ["MLEREDUX_BASE_IMAGE"]


@pytest.fixture(scope="module")
def sandbox(engine: str) -> Sandbox:
    return current().sandbox(engine)


@pytest.fixture(scope="module")
def plain(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """An image with Python and nothing else."""
    agent = Agent(id="plain", title="Plain", command=("true",))
    return sandbox.build(BuildRequest(agent=agent, log=tmp_path_factory.mktemp("plain") / "build.log"))


LaunchMaker = Callable[..., Launch]


def make_folders(root: Path) -> dict[str, Path]:
    """A run's folders as the pipeline makes them, with a private folder beside the public one."""
    folders = {name: root / name for name in ("task", "public", "output", "scratch", "control")}
    for folder in (*folders.values(), root / "private", folders["task"] / "data"):
        folder.mkdir(parents=True, exist_ok=True)
    (folders["task"] / "description.md").write_text("What to predict.\n")
    (folders["task"] / "instructions.md").write_text("How to submit it.\n")
    (folders["public"] / "train.csv").write_text("id,x,y\n1,2,3\n")
    (folders["public"] / "images").mkdir(exist_ok=True)
    (folders["public"] / "images" / "1.txt").write_text("an image\n")
    (root / "private" / "answers-nobody-may-see.csv").write_text("id,y\n2,4\n")
    return folders


@pytest.fixture
def make_launch(plain: Built) -> Iterator[LaunchMaker]:
    """`make_launch("python", "-c", …, limits={…}, …)` gives a launch of that command."""
    with tempfile.TemporaryDirectory(prefix="mleredux-test-") as name:
        root = Path(name)
        root.chmod(0o755)

        def make(*command: str, limits: dict[str, Any] | None = None, **changes: Any) -> Launch:
            folders = make_folders(root)
            agent = Agent(id="plain", title="Plain", command=command or ("true",))
            launch = Launch(
                run_id=f"test-{root.name}",
                owner=OWNER,
                agent=agent,
                built=plain,
                command=command,
                limits=Limits(**{"memory_mb": 256, "processes": 64, "disk_mb": 100, **(limits or {})}),
                network="none",
                task_dir=folders["task"],
                data_dir=folders["public"],
                output_dir=folders["output"],
                scratch_dir=folders["scratch"],
                control_dir=folders["control"],
                log=root / "launch.log",
                env={"MLEREDUX_TASK": "digits", "MLEREDUX_SUBMISSION": "/output/submission.csv"},
            )
            return dataclasses.replace(launch, **changes)

        yield make


@pytest.fixture
def run(sandbox: Sandbox) -> Callable[[Launch], tuple[Exit, bytes]]:
    """Start a launch, wait for its end, and give that with its log."""

    def to_the_end(launch: Launch, seconds: float = 60) -> tuple[Exit, bytes]:
        handle = sandbox.start(launch)
        try:
            ended = wait(handle, seconds)
        finally:
            handle.close()
        return ended, launch.log.read_bytes()

    return to_the_end


def wait(handle: Handle, seconds: float = 180) -> Exit:
    """Wait until the agent has ended."""
    until = time.monotonic() + seconds
    while (ended := handle.poll()) is None:
        assert time.monotonic() < until, "the agent does not end"
        time.sleep(0.05)
    return ended


@pytest.fixture
def wait_for_end() -> Callable[..., Exit]:
    return wait


@pytest.fixture
def containers(engine: str, program: Program) -> Callable[[str], list[str]]:
    """`containers(run_id)` gives the ids of the containers of a run that the engine has; Apptainer's are processes."""
    if engine == "apptainer":
        return lambda run_id: [str(one.pid) for one in processes_of(run_id)]
    listed = ("ps", "--all", "--quiet", "--no-trunc", "--filter")
    return lambda run_id: program(*listed, f"label=mleredux.run={run_id}").split()


def processes_of(run_id: str) -> list[psutil.Process]:
    """Processes of a run that was started without an engine."""
    return [
        one for one in psutil.process_iter(["environ"]) if (one.info["environ"] or {}).get("MLEREDUX_RUN_ID") == run_id
    ]


def with_build(launch: Launch, **build: Any) -> Launch:
    """The launch with another build of its agent."""
    return dataclasses.replace(launch, agent=launch.agent.model_copy(update={"build": Build(**build)}))


@pytest.fixture
def change_build() -> Callable[..., Launch]:
    return with_build
