"""The program that holds the nodes of a Ray cluster for `ray_cluster`; it answers a request a line.

It is started by the Python that has Ray, and imports nothing else.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from ray.cluster_utils import Cluster

_TRIES = 3
_CONFIG = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 1000,
    "health_check_timeout_ms": 3000,
    "health_check_failure_threshold": 3,
}


class Nodes:
    """The nodes, by name."""

    def __init__(self, folder: str, cpus: int, memory_mb: int, gpus: int, durable: bool, port: int) -> None:
        self._cluster = Cluster(shutdown_at_exit=False)  # else a reaper kills its whole process group
        self._found: dict[str, Any] = {}
        self._has = {"num_cpus": cpus, "num_gpus": gpus, "memory": memory_mb * 2**20, "resources": {"scratch": 1}}
        stored = {"gcs_storage": "rocksdb", "gcs_storage_path": f"{folder}/gcs"} if durable else {}
        self._head = {
            "temp_dir": folder,
            **({"gcs_server_port": port} if port else {}),
            "include_dashboard": False,
            "include_log_monitor": False,
            "no_monitor": True,
            "_system_config": {**_CONFIG, **stored},
        }

    def add(self, name: str) -> list[Any]:
        """Start a node, the first time the head; return the cluster's address and the number of its raylet."""
        head = {} if self._found else self._head
        for left in range(_TRIES - 1, -1, -1):
            try:
                node = self._cluster.add_node(node_name=name, **self._has, **head)
                break
            except Exception:  # a raylet that does not start in time on a busy machine
                if not left or head:
                    raise
        self._found[name] = node
        [raylet] = node.all_processes["raylet"]
        return [self._cluster.address, raylet.process.pid]

    def remove(self, name: str) -> None:
        """End what is left of a node."""
        self._cluster.remove_node(self._found.pop(name), allow_graceful=False)

    def stop_controller(self) -> None:
        """Kill the process that holds the state of the cluster."""
        self._cluster.head_node.kill_gcs_server(check_alive=False)

    def start_controller(self) -> None:
        """Start it again."""
        self._cluster.head_node.start_gcs_server()

    def process_of(self, actor: str) -> int:
        """The number of an actor's process."""
        [number] = {one["Pid"] for one in self._cluster.global_state.actor_table(None).values() if one["Name"] == actor}
        return int(number)

    def close(self) -> None:
        """End all."""
        self._cluster.shutdown()


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    nodes = Nodes(**json.loads(sys.argv[1]))
    for line in sys.stdin:
        called, *words = json.loads(line)
        print(json.dumps(getattr(nodes, called)(*words)), file=answers, flush=True)
    nodes.close()
