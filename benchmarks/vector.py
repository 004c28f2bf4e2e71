"""Measure many concurrent episodes through the Gymnasium, OpenEnv and verifiers bridges.

`uv run python benchmarks/vector.py` prints the curve; `--soak SECONDS` plays episodes until this CPU time is used, and
counts what is lost or leaked. OpenEnv and verifiers need the environments that `.ci/validators` has created.

A reset creates about 60 files and folders. On ext4, each costs several times as much for up to five minutes after many
files were deleted, whose inodes are not reused so soon. `CPU us/file` is this cost just before the resets: compare
lines only where it is similar, or set `TMPDIR` to a folder in memory.
"""

from __future__ import annotations

import argparse
import asyncio
import atexit
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol

import psutil
from mleredux_agents import fair_share

BRIDGES = ("gymnasium", "openenv", "verifiers")
SIZES = (1, 16, 64, 128, 256, 512)
COPY = 'cp "$MLEREDUX_DATA_DIR/sample_submission.csv" submission.csv'
HEAD = ("bridge", "episodes", "resets/s", "CPU ms/reset", "CPU us/file", "steps/s", "CPU ms/step", "p50 ms", "p99 ms")
HEAD += ("MB each",)


class Episode(Protocol):
    """An episode through one of the bridges."""

    def reset(self, seed: int) -> None:
        """Start a run."""

    def step(self, command: str) -> str:
        """Execute a shell command; return its output."""

    def end(self) -> bool:
        """Submit; return whether the submission was valid and its reward positive."""

    def close(self) -> None:
        """Cancel the run, unless it has ended."""


class GymnasiumEpisode:
    """An episode of `TaskEnvironment`."""

    def __init__(self, places: dict[str, Any]) -> None:
        from mleredux_bridge_gymnasium.environment import TaskEnvironment

        self._env = TaskEnvironment("wine", slot_timeout=600, **places)
        self.close = self._env.close

    def reset(self, seed: int) -> None:
        """Start a run."""
        self._env.reset(seed=seed)

    def step(self, command: str) -> str:
        """Execute a shell command; return its output."""
        return str(self._env.step({"kind": 0, "text": command})[0]["text"])

    def end(self) -> bool:
        """Submit; return whether the submission was valid and its reward positive."""
        _, reward, over, _, info = self._env.step({"kind": 2, "text": ""})
        return over and info["valid"] and reward > 0


class OpenEnvEpisode:
    """An episode of the environment that the OpenEnv server serves."""

    def __init__(self, places: dict[str, Any]) -> None:
        from mleredux_bridge_openenv.environment import TaskAction, TaskEnvironment

        self._env, self._action = TaskEnvironment(["wine"], places=places), TaskAction
        self.close = self._env.close

    def reset(self, seed: int) -> None:
        """Start a run."""
        self._env.reset(seed=seed)

    def step(self, command: str) -> str:
        """Execute a shell command; return its output."""
        return self._env.step(self._action(kind="shell", text=command)).text

    def end(self) -> bool:
        """Submit; return whether the submission was valid and its reward positive."""
        seen = self._env.step(self._action(kind="submit"))
        return bool(seen.done and seen.valid and seen.reward and seen.reward > 0)


class VerifiersEpisode:
    """A rollout of the taskset; commands are sent as its tools send them."""

    _loop: asyncio.AbstractEventLoop | None = None
    """The event loop of all rollouts, as in verifiers."""

    def __init__(self, places: dict[str, Any]) -> None:
        from mleredux_bridge_verifiers.taskset import MlereduxTaskConfig

        if VerifiersEpisode._loop is None:
            VerifiersEpisode._loop = asyncio.new_event_loop()
            threading.Thread(target=VerifiersEpisode._loop.run_forever, daemon=True).start()
        fields = {name: str(places[name]) for name in ("sandbox", "runs_dir", "data_dir")}
        self._config = MlereduxTaskConfig(concurrent=places["concurrent"], **fields)
        self._trace: Any = None

    def reset(self, seed: int) -> None:
        """Start a run."""
        from mleredux_bridge_verifiers.taskset import MlereduxData, MlereduxTask

        self._task = MlereduxTask(MlereduxData(name="wine", prompt="", task="wine", seed=seed), self._config)
        self._trace = SimpleNamespace(id=f"{id(self)}-{seed}", state=SimpleNamespace(run=""), info={})
        self._run(self._task.setup(self._trace, SimpleNamespace(name=self._trace.id)))

    def step(self, command: str) -> str:
        """Execute a shell command; return its output."""
        from mleredux import Run
        from mleredux_agents import Attached

        return Attached(Run(Path(self._trace.state.run))).execute(command).output

    def end(self) -> bool:
        """Submit; return whether the submission was valid and its reward positive."""
        self._run(self._task.finalize(self._trace, SimpleNamespace(name=self._trace.id)))
        return bool(self._run(self._task.reward(self._trace)) > 0)

    def close(self) -> None:
        """Cancel the run, unless it has ended."""
        from mleredux_bridge_verifiers import taskset

        if self._trace is not None and (session := taskset._open.pop(self._trace.id, None)) is not None:
            session.close()

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


MAKERS: dict[str, Callable[[dict[str, Any]], Episode]] = {
    "gymnasium": GymnasiumEpisode,
    "openenv": OpenEnvEpisode,
    "verifiers": VerifiersEpisode,
}


def family() -> list[psutil.Process]:
    """Return this process and its descendants."""
    return [psutil.Process(), *psutil.Process().children(recursive=True)]


def cpu() -> float:
    """Return CPU seconds of this process, its descendants, and those that have ended and were waited for."""
    total = 0.0
    for process in family():
        with contextlib.suppress(psutil.Error, OSError):
            used = process.cpu_times()
            own = time.clock_gettime((~process.pid << 3) | 2) if sys.platform == "linux" else used.user + used.system
            total += own + used.children_user + used.children_system
    return total


def memory() -> float:
    """Return the proportional set size of this process and its descendants in MB, without servers that are forked:
    all episodes share them, and they end when idle.
    """
    total = 0.0
    for process in family():
        with contextlib.suppress(psutil.Error):
            if process.ppid() != os.getpid() or "forkserver" not in " ".join(process.cmdline()):
                total += process.memory_full_info().pss / 2**20
    return total


def settled() -> None:
    """Wait until no command and no reaping is under way."""
    until, before = time.monotonic() + 20, -1
    while (count := len(family())) != before and time.monotonic() < until:
        before = count
        time.sleep(1.2)


def idle() -> None:
    """Wait until the processes that start episodes' commands have ended; these are children of the servers."""
    until = time.monotonic() + 300
    while len(family()) > 1 + len(psutil.Process().children()) and time.monotonic() < until:
        time.sleep(0.5)


def at_once(episodes: Sequence[Episode], call: Callable[[int, Episode], object]) -> tuple[float, float, list[float]]:
    """Call a function for all episodes at once; return wall and CPU seconds, and sorted latencies."""

    def timed(number: int, episode: Episode) -> float:
        began = time.perf_counter()
        call(number, episode)
        return time.perf_counter() - began

    before, began = cpu(), time.perf_counter()
    with ThreadPoolExecutor(len(episodes)) as pool:
        taken = sorted(pool.map(timed, range(len(episodes)), episodes))
    wall = time.perf_counter() - began
    settled()
    return wall, cpu() - before, taken


def places_of(folder: str, size: int) -> dict[str, Any]:
    """Return the arguments of environments of which this many share the machine."""
    return {
        "sandbox": "process",
        "runs_dir": f"{folder}/runs-{size}",
        "data_dir": f"{folder}/data",
        "limits": fair_share(size),
    }


def episodes_of(bridge: str, size: int, folder: str) -> list[Episode]:
    """Return episodes that have not begun."""
    places = places_of(folder, size)
    if bridge == "verifiers":
        places["concurrent"] = size
    return [MAKERS[bridge](places) for _ in range(size)]


def measured(bridge: str, size: int, folder: str) -> dict[str, Any]:
    """Return a line of the curve."""
    from _measuring import command_seconds, file_seconds

    [first] = episodes_of(bridge, 1, folder)
    first.reset(0)  # prepares the data, and starts the processes that are forked
    first.step("true")
    settled()
    first.close()
    base = memory()
    episodes, rounds = episodes_of(bridge, size, folder), max(2, 64 // size)
    creation = file_seconds(folder)
    wall, used, _ = at_once(episodes, lambda number, episode: episode.reset(number))
    at_once(episodes, lambda _, episode: episode.step("true"))
    idle()
    each = (memory() - base) / size
    at_once(episodes, lambda _, episode: episode.step("true"))  # forks the process that starts an episode's commands
    steps = [at_once(episodes, lambda _, episode: episode.step("true")) for _ in range(rounds)]
    taken = sorted(value for _, _, some in steps for value in some)
    count = rounds * size
    command = command_seconds()
    with ThreadPoolExecutor(64) as pool:
        list(pool.map(lambda episode: episode.close(), episodes))
    return {
        "bridge": bridge,
        "episodes": size,
        "resets/s": size / wall,
        "CPU ms/reset": 1e3 * used / size,
        "CPU us/file": 1e6 * creation,
        "steps/s": count / sum(step[0] for step in steps),
        "CPU ms/step": 1e3 * (sum(step[1] for step in steps) / count - command),
        "p50 ms": 1e3 * taken[len(taken) // 2],
        "p99 ms": 1e3 * taken[min(len(taken) - 1, len(taken) * 99 // 100)],
        "MB each": each,
    }


def soaked(bridge: str, size: int, folder: str, seconds: float) -> dict[str, Any]:
    """Play episodes with this many at once until the CPU time is used; return counts of what was lost or leaked."""
    [first] = episodes_of(bridge, 1, folder)
    first.reset(0)
    first.step(COPY)
    first.end()
    settled()
    before, limit = _holdings(folder), cpu() + seconds
    played, lost, lock = 0, list[str](), threading.Lock()

    def play(number: int) -> None:
        nonlocal played
        chance = random.Random(number)
        [episode] = made_for[number : number + 1]
        seed = number
        while not over.is_set():
            try:
                episode.reset(seed)
                token = f"{number}-{seed}"
                episode.step(f"echo {token} > mine; sleep 300 & sleep 300 & true")
                for _ in range(chance.randrange(1, 6)):
                    seen = episode.step("cat mine")
                    if seen != f"{token}\n":
                        raise AssertionError(f"{token} saw {seen!r}")
                if chance.random() < 0.3:
                    episode.close()
                elif episode.step(COPY) or not episode.end():
                    raise AssertionError(f"{token} has no reward")
                with lock:
                    played += 1
            except Exception as error:
                with lock:
                    lost.append(f"{type(error).__name__}: {error}")
            seed += size
        episode.close()

    over, made_for = threading.Event(), episodes_of(bridge, size, folder)
    with ThreadPoolExecutor(size) as pool:
        running = [pool.submit(play, number) for number in range(size)]
        try:
            while cpu() < limit and not all(future.done() for future in running):
                time.sleep(0.5)
        finally:
            over.set()
    for future in running:
        future.result()
    settled()
    until = time.monotonic() + 30
    while max((leaked := _grown(before, folder)).values()) > 0 and time.monotonic() < until:
        time.sleep(1)  # threads may still be ending
    return {"bridge": bridge, "episodes": size, "played": played, "lost": len(lost), "why": lost[:3], "leaked": leaked}


def _holdings(folder: str) -> dict[str, int]:
    """Count what episodes must not leave behind; the processes that are forked end by themselves when idle."""
    mounts = Path("/proc/self/mounts").read_text() if Path("/proc/self/mounts").exists() else ""
    return {
        "processes": sum("forkserver" not in " ".join(_command(one)) for one in family()),
        "descriptors": psutil.Process().num_fds(),
        "threads": psutil.Process().num_threads(),
        "mounts": mounts.count(folder),
        "folders": len(list(Path(tempfile.gettempdir()).glob(f"mleredux-{os.getuid()}-????????????????"))),
    }


def _grown(before: dict[str, int], folder: str) -> dict[str, int]:
    return {name: count - before[name] for name, count in _holdings(folder).items()}


def _command(process: psutil.Process) -> list[str]:
    with contextlib.suppress(psutil.Error):
        return process.cmdline()
    return ["forkserver"]  # it has just ended


def _exit(_number: int, _frame: object) -> None:
    """Exit, so that open episodes are closed."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(1)


def main() -> None:
    """Measure in this process the bridges that it has, and the others in their environments; print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bridge", choices=BRIDGES, action="append")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--soak", type=float, help="CPU seconds of each bridge")
    parser.add_argument("--inner", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, _exit)
    if options.inner:
        folder = tempfile.mkdtemp()
        atexit.register(shutil.rmtree, folder, ignore_errors=True)  # after the episodes are closed
        tempfile.tempdir = folder  # other programs' folders are not counted as leaked
        for size in options.sizes:
            words = (*options.bridge, size, folder)
            line = soaked(*words, options.soak) if options.soak else measured(*words)
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()
        return
    from _measuring import machine, table
    from bridges import programs_of

    lines = []
    for bridge in options.bridge or BRIDGES:
        programs = Path(sys.executable).parent if bridge == "gymnasium" else programs_of(bridge)
        if programs is None:
            sys.stderr.write(f"{bridge} is not installed; run `.ci/validators`.\n")
            continue
        words = [programs / "python", __file__, "--inner", "--bridge", bridge, "--sizes", *map(str, options.sizes)]
        words += ["--soak", str(options.soak)] if options.soak else []
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as program:
            try:
                lines += [json.loads(line) for line in program.stdout or ()]
            except BaseException:
                program.terminate()
                raise
    if options.soak:
        sys.stdout.writelines(json.dumps(line) + "\n" for line in lines)
    else:
        rows = [tuple(value if isinstance(value, str) else f"{value:.4g}" for value in line.values()) for line in lines]
        sys.stdout.write(f"{machine()}\n\n{table(HEAD, *rows)}\n")


if __name__ == "__main__":
    main()
