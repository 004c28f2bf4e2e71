"""`harbor run` of Harbor itself on a published folder: images are built and both agents run in Docker.

Harbor's proxy, by which it takes the network away, is an image from a registry; here, a container without a network
replaces it. The base image is replaced, too. Everything else is Harbor's.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from mleredux_bridge_harbor.publish import plan, publish
from mleredux_testing.pytest_plugin import validator

TASKS = ("wine", "synthetic-micro-SEED", "leakage@synthetic-micro-SEED")
"""A starter, a synthetic task and a technique."""
ENVIRONMENT = """\
from harbor.environments.docker import COMPOSE_NO_NETWORK_PATH
from harbor.environments.docker.docker import DockerEnvironment
from harbor.models.task.config import NetworkMode

class WithoutNetwork(DockerEnvironment):
    @classmethod
    def _egress_control_kernel_support(cls):
        return False

    @property
    def capabilities(self):
        return super().capabilities.model_copy(update={"disable_internet": True})

    @property
    def _docker_compose_paths(self):
        return [*super()._docker_compose_paths, COMPOSE_NO_NETWORK_PATH]

    async def _apply_network_policy(self, network_policy):
        assert network_policy.network_mode == NetworkMode.NO_NETWORK
"""


@pytest.fixture(scope="module")
def folder(docker_base_image: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("harbor-run")
    facts = publish(plan(TASKS, "kinds", range(7, 8), 0.0), home / "kinds", 0, home / "data")
    assert facts["train"]["tasks"] == len(TASKS)
    for path in (home / "kinds" / "tasks").rglob("Dockerfile"):
        path.write_text(re.sub("^FROM .+", f"FROM {docker_base_image}", path.read_text()))
    (home / "environments.py").write_text(ENVIRONMENT)
    return home


@pytest.mark.docker
@pytest.mark.slow
@pytest.mark.parametrize(("agent", "reward"), [("oracle", 1), ("nop", 0)])
def test_harbor_runs_its_agents_on_every_kind_of_task(folder: Path, agent: str, reward: int) -> None:
    apart = validator("harbor-run")
    command = [
        *(apart / "bin" / "harbor", "run", "--registry-path", "registry.json", "--dataset", "kinds-train@1.0.0"),
        *("--agent", agent, "--yes", "--quiet"),
        *("--env", "environments:WithoutNetwork", "--jobs-dir", folder, "--job-name", agent, "-n", "3"),
    ]
    ended = subprocess.run(
        command,
        cwd=folder / "kinds",
        env={**os.environ, "HOME": str(folder), "PYTHONPATH": str(folder), "DOCKER_CONFIG": str(apart / "docker")},
        capture_output=True,
        text=True,
        timeout=900,
    )
    printed = [path.read_text() for name in ("exception.txt", "test-stdout.txt") for path in folder.rglob(name)]
    rewards = {
        path.parents[1].name.rpartition("__")[0]: json.loads(path.read_text())
        for path in (folder / agent).glob("*/verifier/reward.json")
    }
    names = [name.replace("SEED", "public-7").replace("@", "-") for name in TASKS]
    assert rewards == {name: {"reward": reward, "valid": reward} for name in names}, "\n".join(printed)
    assert ended.returncode == 0, ended.stdout + ended.stderr
