"""A Ray cluster whose head starts again without stored state: it knows neither the nodes nor the actors of before."""

from __future__ import annotations

from pathlib import Path

import pytest
from mleredux_executor_ray.executor import EXECUTOR
from mleredux_support.lab import Lab, until
from mleredux_support.ports import free_port
from mleredux_support.ray_cluster import RayCluster


@pytest.mark.ray
def test_running_and_queued_runs_start_again_on_a_new_cluster_at_the_same_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    with RayCluster(1, durable=False, port=port) as cluster:
        for name, value in {**cluster.env, **Lab.environment(tmp_path)}.items():
            monkeypatch.setenv(name, value)
        lab = Lab(tmp_path, EXECUTOR)
        runs = [lab.new(waits=True) for _ in range(3)]
        thread = lab.follow(runs)
        until(lambda: sum(lab.starts(run) for run in runs) == 2)
        started = [run for run in runs if lab.starts(run)]
    until(lambda: not lab.processes(runs))
    with RayCluster(1, durable=False, port=port):
        until(lambda: sum(lab.starts(run) for run in runs) == 4)
        lab.release()
        thread.join(240)
        assert not thread.is_alive(), {run.id: (run.state, lab.said[run.id][-1]) for run in runs}
        until(lambda: not lab.processes(runs))
    lab.close()
    assert [lab.starts(run) for run in runs] == [2 if run in started else 1 for run in runs]
    count = lab.count(runs)
    assert (count.done, count.lost, count.twice) == (3, (), ())
