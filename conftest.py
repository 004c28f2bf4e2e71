"""The order of tests (files that take long first, so that parallel workers end together), and clusters for them."""

from __future__ import annotations

import gc
import os
import runpy
import tomllib
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from mleredux_testing.pytest_plugin import skip_or_fail

if TYPE_CHECKING:
    from mleredux_support.ray_cluster import RayCluster
    from mleredux_support.slurm import SlurmCluster

# Programs that tests start import the support of tests, too.
_SUPPORT = str(Path(__file__).parent / "tests" / "_support")
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (_SUPPORT, os.environ.get("PYTHONPATH"))))
# The synchronous client, in case the asynchronous one has changed since it was built.
runpy.run_path(str(Path(__file__).with_name("plugins") / "services/client/generate_sync.py"))["generate"]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put files that take longer before others; the order within a file stays."""
    folder = Path(__file__).parent
    seconds = tomllib.loads((folder / "tests" / "durations.toml").read_text())
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    items.sort(key=lambda item: -seconds.get(item.path.relative_to(folder).as_posix(), slow[item.path]))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without searching for garbage among thousands of tests, which would take a fifth of the time."""
    gc.disable()
    collected = yield
    gc.freeze()
    gc.enable()
    return collected


@pytest.fixture(scope="session")
def slurm() -> Iterator[SlurmCluster]:
    """Start a Slurm cluster of four nodes with two CPUs and two GPUs each; its commands find it."""
    from mleredux_support.slurm import SlurmCluster, has_slurm

    if not has_slurm():
        skip_or_fail("slurm", "Slurm is not installed (`.ci/slurm` does that)")
    with SlurmCluster() as cluster, pytest.MonkeyPatch.context() as patch:
        for name, value in cluster.env.items():
            patch.setenv(name, value)
        yield cluster


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[RayCluster]:
    """Start a Ray cluster of three nodes with two CPUs and two GPUs each; the executor finds it."""
    from mleredux_support.ray_cluster import RayCluster, ray_python

    if ray_python() is None:
        skip_or_fail("ray", "Ray is not installed (`.ci/ray` does that)")
    with RayCluster() as cluster, pytest.MonkeyPatch.context() as patch:
        for name, value in cluster.env.items():
            patch.setenv(name, value)
        yield cluster
