"""`kill -9` of the server and of its workers at random moments, while clients create, cancel and follow runs."""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from mleredux._core.store import Run, RunStore
from mleredux_support.server import ServerProcess

sys.path.insert(0, str(Path(__file__).parent / "recovery"))
from forking import ForkedServer

ROUNDS = int(os.environ.get("MLEREDUX_RECOVERY_ROUNDS", "15"))
SEED = int(os.environ.get("MLEREDUX_RECOVERY_SEED", "0")) or random.SystemRandom().randrange(1, 2**31)
PLUGIN = Path(__file__).parent / "recovery" / "toy_counting.py"
FINAL = {"done", "failed", "timed_out", "cancelled"}


class Place:
    """A runs directory with a server that is restarted."""

    def __init__(self, home: Path, **env: str) -> None:
        self.home, self.counts = home, home / "counts"
        self.counts.mkdir()
        variables = {
            "MLEREDUX_PLUGINS": f"mleredux_testing.toys,{PLUGIN}",
            "COUNTS": str(self.counts),
            "MLEREDUX_CPUS": "8",
            "MLEREDUX_MEMORY_MB": "8000",
            **env,
        }
        options = ("--data-dir", str(home / "data"), "--workers", "3", "--log-level", "warning")
        self.server = ForkedServer(home / "runs", *options, env=variables)
        self.store = RunStore(home / "runs")
        self.killed: set[int] = set()

    def ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.server.token}", **more.pop("headers", {})}
        return httpx.request(method, self.server.url + path, headers=headers, timeout=60, **more)

    def new(self, tenths: int, agent: str = "counting", **more: Any) -> str:
        answer = self.ask("POST", "/v1/runs", json={"task": "toy", "agent": agent, "seed": tenths, **more})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def get(self, run_id: str) -> dict[str, Any]:
        answer = self.ask("GET", f"/v1/runs/{run_id}")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def ends(self, ids: list[str], seconds: float = 240) -> dict[str, dict[str, Any]]:
        """Wait until the runs have ended."""
        until, ended = time.monotonic() + seconds, {}
        while len(ended) < len(ids):
            for run_id in ids:
                if run_id not in ended and (found := self.get(run_id))["status"] in FINAL:
                    ended[run_id] = found
            open_ = [run_id for run_id in ids if run_id not in ended]
            assert time.monotonic() < until, f"without an end: {[self.get(run_id) for run_id in open_]}\n{self.log()}"
            time.sleep(0.2)
        return ended

    def workers(self) -> list[psutil.Process]:
        """Workers of all servers so far."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                command = process.cmdline()
                if "mleredux_server.scheduler.worker" in command and str(self.server.runs_dir) in command:
                    found.append(process)
        return found

    def kill(self, process: psutil.Process) -> None:
        self.killed.add(process.pid)
        with contextlib.suppress(psutil.Error):
            process.kill()

    def agents(self) -> list[psutil.Process]:
        """Return the agents' live processes."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get("MLEREDUX_OWNER") == self.store.owner and process.status() != "zombie":
                    found.append(process)
        return found

    def starts(self, run_id: str) -> int:
        """Return how often the agent started, by its own count."""
        path = self.counts / run_id
        return len(path.read_text().split()) if path.exists() else 0

    def run(self, run_id: str) -> Run:
        return Run(self.store.path / run_id)

    def agent_told(self, run_id: str) -> list[str]:
        """Return how often the agent started, by the run's events."""
        return [event.data["status"] for event in self.run(run_id).events() if event.type == "agent"]

    def log(self) -> str:
        path = self.server.runs_dir / ".server" / "workers.log"
        own = (self.home / "server.log").read_text().splitlines()
        return "\n".join([*own[-40:], *(path.read_text().splitlines()[-40:] if path.exists() else [])])

    def taken_up(self) -> list[dict[str, Any]]:
        """Return what workers logged, in order."""
        path = self.server.runs_dir / ".server" / "workers.log"
        text = path.read_text() if path.exists() else ""
        lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        return sorted((line for line in lines if "job" in line), key=lambda line: str(line["timestamp"]))


@pytest.fixture
def place(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    # Many starts: modules are compiled once, even if the tests themselves may write no bytecode.
    cache = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(tmp_path_factory.getbasetemp() / "bytecode")}
    made = Place(tmp_path, STAGE_SECONDS="0.15", **cache)
    try:
        yield made
    finally:
        made.server.close()
        for process in [*made.workers(), *made.agents()]:
            with contextlib.suppress(psutil.Error):
                process.kill()


def until(there: Callable[[], Any], seconds: float = 120) -> Any:
    end = time.monotonic() + seconds
    while not (found := there()):
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.05)
    return found


class Follower(threading.Thread):
    """Follows a run's events over all restarts, resuming after the last one it received."""

    def __init__(self, place: Place, run_id: str) -> None:
        super().__init__(daemon=True)
        self.place, self.run_id = place, run_id
        self.seen: list[int] = []
        self.end: str | None = None

    def run(self) -> None:
        while self.end is None:
            headers = {"Authorization": f"Bearer {self.place.server.token}", "Accept": "text/event-stream"}
            if self.seen:
                headers["Last-Event-ID"] = str(self.seen[-1])
            url = f"{self.place.server.url}/v1/runs/{self.run_id}/events"
            with (
                contextlib.suppress(httpx.HTTPError),
                httpx.stream("GET", url, headers=headers, timeout=httpx.Timeout(30)) as answer,
            ):
                if answer.status_code == 200:
                    self._read(answer.iter_lines())
            time.sleep(0.1)

    def _read(self, lines: Iterator[str]) -> None:
        fields: dict[str, str] = {}
        for line in lines:
            if line and not line.startswith(":"):
                name, _, value = line.partition(":")
                fields[name] = value.removeprefix(" ")
            elif not line and fields:
                if fields.get("event") == "end":
                    self.end = json.loads(fields["data"])["status"]
                    return
                if "id" in fields:
                    assert json.loads(fields["data"])["seq"] == int(fields["id"])
                    self.seen.append(int(fields["id"]))
                fields = {}


class Client(threading.Thread):
    """Creates and cancels runs until it is stopped, whatever happens to the server."""

    def __init__(self, place: Place, chance: random.Random, most: int) -> None:
        super().__init__(daemon=True)
        self.place, self.chance, self.most = place, chance, most
        self.acknowledged: list[str] = []
        self.refused: list[str] = []
        self.answered = 0
        self.stopping = threading.Event()

    def run(self) -> None:
        while not self.stopping.is_set():
            with contextlib.suppress(httpx.HTTPError):
                self._work()
            time.sleep(self.chance.uniform(0.05, 0.5))

    def _work(self) -> None:
        if len(self.acknowledged) < self.most:
            asked = {"task": "toy", "agent": "counting", "seed": self.chance.choice([0, 3, 10, 30])}
            answer = self.place.ask("POST", "/v1/runs", json=asked)
            if answer.status_code == 201:
                self.acknowledged.append(answer.json()["id"])
            elif answer.status_code != 503:
                self.refused.append(answer.text)
        if self.acknowledged and self.chance.random() < 0.12:
            self.place.ask("POST", f"/v1/runs/{self.chance.choice(self.acknowledged)}/cancel")
        self.answered += 1


@pytest.mark.slow
def test_kills_at_any_time_lose_no_run_and_start_no_agent_twice_unrecorded(place: Place) -> None:
    print(f"MLEREDUX_RECOVERY_SEED={SEED} MLEREDUX_RECOVERY_ROUNDS={ROUNDS}")
    chance = random.Random(SEED)
    met: Counter[str] = Counter()
    place.server.start()
    client = Client(place, random.Random(SEED + 1), most=2 * ROUNDS)
    client.start()
    followers: list[Follower] = []
    for number in range(ROUNDS):
        if number:
            place.server.start()
        if number % 4:  # else it is killed before it answered anything
            before = client.answered
            until(lambda: client.answered > before)  # noqa: B023 - called immediately
        time.sleep(chance.uniform(0.05, 1.5))
        if client.acknowledged and number % 3 == 0:
            followers.append(Follower(place, client.acknowledged[-1]))
            followers[-1].start()
        met.update(str(place.run(run_id).state) for run_id in client.acknowledged)
        if number % 3 == 2 and (workers := place.workers()):
            for process in chance.sample(workers, min(len(workers), 2)):
                place.kill(process)
        place.server.kill()
    client.stopping.set()
    place.server.start()
    client.join(120)
    print("states when killed:", dict(met))

    ids = client.acknowledged
    assert len(ids) >= ROUNDS / 2 and not client.refused, client.refused
    ended = place.ends(ids)
    for run_id, shown in ended.items():
        run = place.run(run_id)
        events = run.events()
        assert [event.seq for event in events] == list(range(len(events)))
        assert shown["status"] == run.state
        assert shown["status"] in ("done", "cancelled") or "workers died" in shown["message"], shown["message"]
        said = sum(event.type == "attempt" and event.data["status"] == "starting" for event in events)
        assert place.starts(run_id) <= said, f"{run_id}: started {place.starts(run_id)} times, {said} said"
        if shown["status"] == "done":
            assert shown["score"] is not None and place.starts(run_id) >= 1
    _worked_on_by_one(place)
    for follower in followers:
        follower.join(120)
        assert follower.end == ended[follower.run_id]["status"]
        assert follower.seen == [event.seq for event in place.run(follower.run_id).events()]

    listed = {item["id"] for item in place.ask("GET", "/v1/runs?limit=500").json()["items"]}
    assert listed >= set(ids) and listed == set(place.store.ids()), "each row has its directory, and each its row"
    place.server.stop()
    until(lambda: not place.workers())
    assert not place.agents(), "no process remains"


def _worked_on_by_one(place: Place) -> None:
    """Check that no worker started a job of another live worker."""
    holders: dict[str, int] = {}
    for line in place.taken_up():
        if line["event"] == "job started":
            before = holders.get(line["job"])
            assert before is None or before in place.killed, f"{line['job']} was {before}'s when started: {line}"
            holders[line["job"]] = line["worker"]
        else:
            holders.pop(line["job"], None)


def test_the_agent_of_a_killed_worker_is_adopted_by_the_next_one(place: Place) -> None:
    with place.server:
        run_id = place.new(9999)
        until(lambda: place.starts(run_id))
        [holder] = [line["worker"] for line in place.taken_up()]
        place.kill(psutil.Process(holder))
        until(lambda: "adopted" in place.agent_told(run_id))
        (place.counts / "go on").touch()
        shown = place.ends([run_id])[run_id]
        told = place.agent_told(run_id)
        assert (shown["status"], told, place.starts(run_id)) == ("done", ["started", "adopted"], 1)


def test_a_job_that_kills_its_workers_is_given_up(place: Place) -> None:
    place.server.env["STAGE_SECONDS"] = "600"  # no stage ends in this test
    with place.server:
        run_id = place.new(0)
        for number in range(3):
            line = until(lambda: (found := place.taken_up())[number:] and found[number])  # noqa: B023 - called immediately
            place.kill(psutil.Process(line["worker"]))
        shown = place.ends([run_id])[run_id]
        assert (shown["status"], shown["cause"]) == ("failed", "environment_broke")
        assert shown["message"] == "3 workers died one after another without making progress."


def test_a_server_stops_immediately_and_its_runs_continue(place: Place) -> None:
    place.server.start()
    run_id, waiting = place.new(9999), [place.new(0) for _ in range(6)]
    until(lambda: place.starts(run_id))
    began = time.monotonic()
    place.server.stop()
    assert time.monotonic() - began < 50, "the run would continue forever"
    assert place.run(run_id).state == "running" and place.agents()
    place.server.start()
    assert place.run(run_id).state == "running" and place.agents()
    (place.counts / "go on").touch()
    ended = place.ends([run_id, *waiting])
    assert {shown["status"] for shown in ended.values()} == {"done"}
    assert [place.starts(name) for name in ended] == [1] * 7
    until(lambda: len(place.workers()) <= 3)
    place.server.stop()


def test_a_second_server_on_the_same_runs_is_refused(place: Place) -> None:
    with place.server:
        second = ServerProcess(place.server.runs_dir)
        with pytest.raises(RuntimeError, match=r"Another server already uses .*\. Stop it first"):
            second.start()


@pytest.mark.docker
@pytest.mark.slow
def test_a_container_survives_server_and_worker_and_is_reattached(place: Place, docker_base_image: str) -> None:
    place.server.env["MLEREDUX_BASE_IMAGE"] = docker_base_image
    place.server.start()
    run_id = place.new(80, "contained")
    run = until(lambda: place.run(run_id))
    until(lambda: run.agent_log.exists() and b"started" in run.agent_log.read_bytes(), 120)
    place.server.kill()
    for worker in place.workers():
        place.kill(worker)
    until(lambda: not run.alive)
    assert run.state == "running"
    place.server.start()
    shown = place.ends([run_id])[run_id]
    told = place.agent_told(run_id)
    assert (shown["status"], told) == ("done", ["started", "adopted"]), shown["message"]
    assert run.agent_log.read_bytes().count(b"started") == 1, "it was not started again"
    place.server.stop()
    label = f"label=mleredux.owner={place.store.owner}"
    left = subprocess.run(["docker", "ps", "-aq", "--filter", label], capture_output=True, text=True, check=True)
    assert not left.stdout.strip(), "no container is left"
