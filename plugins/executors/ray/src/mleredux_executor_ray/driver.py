"""The program that is connected to Ray, one for each process that uses the executor; it answers one request per line.

Ray ends connected programs when a part of the cluster dies, so neither the command line nor the server connects
directly. The program is started by the Python that has the cluster's Ray, and does not import mleredux. The actor is
sent by value, so the nodes do not need mleredux either.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

try:
    import ray
    from ray._private.state import actors, available_resources_per_node
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
except ImportError as error:
    print(json.dumps({"error": str(error), "kind": "import"}), flush=True)
    sys.exit(1)

_NAMESPACE = "mleredux"
_LEAVE_SECONDS = 10.0
"""Seconds after which an actor that can't end on its own is killed; the kill is retried at this interval."""
_STUCK_SECONDS, _LONGEST_PAUSE = 30.0, 600.0
"""Seconds that an actor waits until idle workers are ended; the pause doubles each time, up to a maximum."""
_WAITING = ("DEPENDENCIES_UNREADY", "PENDING_CREATION", "RESTARTING")


class Job:
    """The actor of a run: Ray restarts it on another node if its node dies."""

    def __init__(self, command: list[str], env: dict[str, str], folder: str) -> None:
        context = ray.get_runtime_context()
        devices = ",".join(context.get_accelerator_ids().get("GPU", ()))
        env = {**env, "CUDA_VISIBLE_DEVICES": devices, "MLEREDUX_GPUS": devices}
        pipe, words = subprocess.PIPE, [sys.executable, "-I", "-S", *command]
        self._supervisor = subprocess.Popen(words, stdin=pipe, stdout=pipe, env=env, cwd=folder)
        self._ended, itself = threading.Event(), context.current_actor
        threading.Thread(target=self._watch, args=(itself,), daemon=True).start()
        itself.follow.remote()

    def follow(self) -> None:
        """Exit when everything has ended."""
        self._ended.wait()
        ray.actor.exit_actor()

    def _watch(self, itself: Any) -> None:
        """Wait until everything has ended, then make the actor exit itself, in case a dying controller lost the
        call.
        """
        assert self._supervisor.stdout is not None
        self._supervisor.stdout.read()
        self._ended.set()
        while True:
            time.sleep(_LEAVE_SECONDS)
            with contextlib.suppress(Exception):  # no controller responds
                ray.kill(itself)


class Idle:
    """Ends idle workers while actors wait for room: a killed controller may have leased them, so that no one else can
    use their CPUs."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}
        self._at = self._pause = 0.0
        self._reason = ""

    def reason(self, waiting: Iterable[str]) -> str:
        """Return why actors that have been waiting for a long time still wait; end idle workers of nodes with occupied
        CPUs.
        """
        now = time.monotonic()
        self._since = {name: self._since.get(name, now) for name in waiting}
        if now - min(self._since.values(), default=now) < _STUCK_SECONDS:
            self._at, self._pause, self._reason = 0.0, 0.0, ""
        elif now >= self._at:
            self._pause = min(_LONGEST_PAUSE, 2 * self._pause or _STUCK_SECONDS)
            self._at, alive, free = now + self._pause, nodes(), available_resources_per_node()
            for node in alive:
                if free.get(node["NodeID"], {}).get("CPU", 0.0) < node["Resources"].get("CPU", 0.0):
                    there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
                    ray.remote(num_cpus=0, max_retries=0, scheduling_strategy=there)(end_idle).remote(_STUCK_SECONDS)
            self._reason = f"{len(alive)} nodes are full; idle workers that reserve CPUs are stopped"
        return self._reason


def end_idle(seconds: float) -> None:
    """Kill this node's idle workers that are older than `seconds`; Ray starts new ones when it needs them."""

    def idle() -> set[int]:
        workers, now = set(), float(Path("/proc/uptime").read_text().split()[0])
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words = (folder / "stat").read_bytes().rpartition(b")")[2].split()
                old = now - int(words[19]) / os.sysconf("SC_CLK_TCK") > seconds
                if old and int(words[1]) == os.getppid() and (folder / "cmdline").read_bytes().startswith(b"ray::IDLE"):
                    workers.add(int(folder.name))
        return workers

    still = idle()
    for _ in range(8):  # it may be between two tasks
        time.sleep(0.25)
        still &= idle()
    for number in still:
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)


_idle = Idle()


def submit(jobs: list[dict[str, Any]], env: dict[str, str]) -> None:
    """Create the actors of jobs."""
    for job in jobs:
        actor = ray.remote(**job["options"], lifetime="detached", namespace=_NAMESPACE, max_restarts=-1)(Job)
        limits = {"MLEREDUX_CPUS": job["cpus"], "MLEREDUX_MEMORY_MB": job["memory_mb"]}
        actor.remote(job["command"], {**env, **limits}, job["folder"])


def poll(names: list[str]) -> dict[str, list[str]]:
    """Return the state of each actor, with its node or, if it is dead, the cause."""
    actors_by_name: dict[str, dict[str, Any]] = {}
    for state in (*_WAITING, "ALIVE"):
        actors_by_name |= {actor["Name"]: actor for actor in actors(actor_state_name=state).values()}
    if not actors_by_name.keys() >= set(names):  # dead, or in another state since the query
        actors_by_name |= {actor["Name"]: actor for actor in actors().values()}
    nodes = {node["NodeID"]: node["NodeName"] for node in ray.nodes()}
    states = {}
    for name in names:
        actor = actors_by_name.get(name, {"State": "DEAD", "DeathCause": ""})
        address = actor.get("Address") or {}
        node = nodes.get(address.get("NodeID", ""))
        # a waiting actor has the node that queues it, but no port; one with a port may never become ALIVE
        if actor["State"] == "ALIVE" or (actor["State"] in _WAITING and node and address.get("Port")):
            states[name] = ["running", node or ""]
        elif actor["State"] in _WAITING:
            states[name] = ["waiting", "being started again" if actor["State"] == "RESTARTING" else ""]
        else:
            states[name] = ["ended", _cause(actor["DeathCause"])]
    reason = _idle.reason(name for name in names if states[name][0] == "waiting")
    return {
        name: [state, detail or reason if state == "waiting" else detail] for name, (state, detail) in states.items()
    }


def stop(name: str) -> None:
    """Kill an actor, or cancel it while it is waiting."""
    try:
        actor = ray.get_actor(name, _NAMESPACE)
    except ValueError:  # it is dead
        return
    ray.kill(actor)


def nodes() -> list[dict[str, Any]]:
    """Return the nodes that are alive; Ray also lists dead nodes, which never come back."""
    wanted = ("NodeID", "NodeName", "Resources", "Labels")
    return [{name: node.get(name) for name in wanted} for node in ray.nodes() if node["Alive"]]


def _cause(cause: Any) -> str:
    """Return the first line of a cause of death; empty if the actor ended on its own."""
    message = getattr(getattr(cause, "actor_died_error_context", None), "error_message", "")
    if not message or "exit_actor" in message:
        return ""
    return str(message).strip().partition("\n")[0]


def main(address: str) -> None:
    """Answer requests on standard input until it is closed."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # keeps Ray's output out of the answers
    functions: dict[str, Callable[..., Any]] = {"submit": submit, "poll": poll, "stop": stop, "nodes": nodes}
    connected = False
    for line in sys.stdin:
        name, arguments = json.loads(line)
        try:
            if not connected:
                ray.init(address, namespace=_NAMESPACE, log_to_driver=False, logging_level="ERROR")
                connected = True
            answer = {"result": functions[name](**arguments)}
        except Exception as error:
            message = str(error) or type(error).__name__
            answer = {"error": message, "kind": "request" if connected else "connection"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
