"""Runs on two Ray nodes that share nothing with each other or with this machine but an object store."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest
from mleredux_executor_ray.executor import RayExecutor
from mleredux_support.gate import GO_ON
from mleredux_support.lab import PLUGINS, Lab, until
from mleredux_support.ray_apart import ApartNode
from mleredux_support.ray_cluster import RayCluster, ray_python
from mleredux_support.s3 import S3Server, can_hide_folders
from mleredux_testing.pytest_plugin import skip_or_fail


@pytest.mark.ray
def test_two_nodes_share_nothing_but_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The node of two of four runs dies; all end on the other, and their files are complete here."""
    if ray_python() is None or os.geteuid() or not can_hide_folders():
        skip_or_fail("ray", "Ray is not installed (`.ci/ray` does that), or folders can't be hidden")
    home, starts, work = tmp_path / "here", tmp_path / "starts", tmp_path / "node"
    home.mkdir()
    with contextlib.ExitStack() as stack:
        server = S3Server()
        stack.callback(server.stop)
        cluster = stack.enter_context(RayCluster(1, cpus=0, gpus=0, durable=False))
        shared = {**server.environment, **cluster.env, **Lab.environment(tmp_path), "MLEREDUX_NODE_DIR": str(work)}
        for name, value in {**shared, "MLEREDUX_PLUGINS": ",".join(PLUGINS)}.items():
            monkeypatch.setenv(name, value)
        nodes = {}
        for name in ("a", "b"):
            nodes[name] = ApartNode(name, cluster.env["MLEREDUX_RAY_ADDRESS"], starts, work)
            stack.callback(nodes[name].kill)
        executor = RayExecutor()
        until(lambda: {node.name for node in executor.nodes()} == {"n1", "a", "b"})
        lab = Lab(home, executor, server.url(tmp_path.name))
        lab.starts_folder = starts
        stack.callback(lab.close)
        starts.mkdir()
        runs = [lab.new(waits=True) for _ in range(4)]
        thread = lab.follow(runs)

        def on(name: str) -> set[str]:
            return {path.name for path in nodes[name].path(starts).iterdir()}

        until(lambda: len(on("a")) == len(on("b")) == 2)
        assert on("a").isdisjoint(on("b")) and not list(starts.iterdir())
        for name, node in nodes.items():
            assert not node.path(home).exists(), "the runs directory of this machine"
            assert {path.name for path in node.path(work / "runs").iterdir()} >= on(name)
        assert not work.exists()
        moved = on("a")
        nodes["a"].kill()
        (nodes["b"].path(starts) / GO_ON).touch()
        thread.join(300)
        assert not thread.is_alive(), {run.id: (run.state, lab.said[run.id][-1]) for run in runs}
        assert on("b") - {GO_ON} == {run.id for run in runs} > moved
        count = lab.count(runs)
        assert (count.done, count.lost, count.twice) == (4, (), ())
        assert all(run.score is not None and (run.output_dir / "devices").exists() for run in runs)
