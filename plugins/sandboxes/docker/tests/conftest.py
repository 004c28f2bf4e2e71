"""Launches for tests: real folders, real images, real containers."""

from __future__ import annotations

import dataclasses
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mleredux._core.models import Agent, Build, Limits
from mleredux._core.protocols import BuildRequest, Built, Exit, Handle, Launch
from mleredux_sandbox_docker.engine import connect, find_image
from mleredux_sandbox_docker.images import BASE_VARIABLE, base_image
from mleredux_sandbox_docker.sandbox import DockerSandbox
from mleredux_testing.pytest_plugin import skip_or_fail

MADE_HERE = "mleredux/debian-python:trixie"
OWNER = "tests-of-mleredux-docker"


@pytest.fixture(scope="session")
def base(docker_engine: None) -> Iterator[str]:
    """A base image that is there: the one asked for, else the one that `.ci/base-image` makes."""
    client = connect()
    with pytest.MonkeyPatch.context() as patch:
        if BASE_VARIABLE not in os.environ and find_image(client, base_image()) is None:
            patch.setenv(BASE_VARIABLE, MADE_HERE)
        if find_image(client, base_image()) is None:
            skip_or_fail("docker", f"there is no base image {base_image()} (make one with `.ci/base-image`)")
        client.close()
        yield base_image()


@pytest.fixture(scope="session")
def sandbox(base: str) -> DockerSandbox:
    return DockerSandbox()


@pytest.fixture(scope="session")
def plain(sandbox: DockerSandbox, tmp_path_factory: pytest.TempPathFactory) -> Built:
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
    (folders["task"] / "instructions.md").write_text("How to hand it in.\n")
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
def run(sandbox: DockerSandbox) -> Callable[[Launch], tuple[Exit, bytes]]:
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
def containers() -> Iterator[Callable[[str], list[str]]]:
    """`containers(run_id)` gives the ids of the containers of a run that the engine has."""
    client = connect()

    def of(run_id: str) -> list[str]:
        found = client.containers(all=True, filters={"label": f"mleredux.run={run_id}"})
        return [item["Id"] for item in found]

    yield of
    client.close()


def with_build(launch: Launch, **build: Any) -> Launch:
    """The launch with another build of its agent."""
    return dataclasses.replace(launch, agent=launch.agent.model_copy(update={"build": Build(**build)}))


@pytest.fixture
def change_build() -> Callable[..., Launch]:
    return with_build
