"""Limits end what goes beyond them, and nothing an agent starts outlives it."""

from __future__ import annotations

import json
import time

import pytest

pytestmark = pytest.mark.engines("docker", "podman", "apptainer")


@pytest.mark.engines("docker", "podman")  # Apptainer's memory is measured: see the conformance tests
@pytest.mark.attack
def test_a_memory_hog_is_ended_by_its_memory_limit(make_launch, sandbox, wait_for_end):
    hog = "hoard = []\nwhile True: hoard.append(bytearray(8 << 20))"
    launch = make_launch("python", "-c", hog)
    handle = sandbox.start(launch)
    try:
        ended = wait_for_end(handle)
        assert ended.out_of_memory
        assert ended.signal == 9
        assert ended.code is None
        assert sandbox.attach(launch).poll() == ended, "also seen by what looks only after its end"
    finally:
        handle.close()


@pytest.mark.attack
def test_an_exit_code_that_only_looks_like_it_is_not_called_out_of_memory(make_launch, run):
    ended, _ = run(make_launch("sh", "-c", "exit 137"))
    assert not ended.out_of_memory


@pytest.mark.engines("docker", "podman")
@pytest.mark.attack
def test_a_fork_bomb_meets_the_limit_on_processes_and_is_seen_to(make_launch, sandbox):
    bomb = (
        "import os, time\n"
        "while True:\n"
        "    try:\n"
        "        if os.fork() == 0: time.sleep(60); os._exit(0)\n"
        "    except OSError: time.sleep(0.1)\n"
    )
    launch = make_launch("python", "-c", bomb, limits={"processes": 40})
    handle = sandbox.start(launch)
    try:
        until = time.monotonic() + 120
        while (handle.usage().processes or 0) <= launch.limits.processes:
            assert time.monotonic() < until, "the bomb is not seen"
            time.sleep(0.1)
        time.sleep(1)
        assert handle.usage().processes == launch.limits.processes + 1, "no more than that can be started"
        handle.kill()
        assert _ended_within(handle, 90).signal == 9
    finally:
        handle.close()


@pytest.mark.attack
def test_no_file_grows_beyond_the_disk_limit(make_launch, run, engine):
    write = (
        "import os\n"
        "file = open('/output/big', 'wb')\n"
        "try:\n"
        "    for _ in range(64): file.write(bytes(1 << 20)); file.flush()\n"
        "except OSError as error: print(error.strerror)\n"
    )
    launch = make_launch("python", "-c", write, limits={"disk_mb": 10})
    ended, log = run(launch)
    assert (ended.code, log) == (0, b"File too large\n")
    slack = 8 << 20 if engine == "apptainer" else 0
    assert (launch.output_dir / "big").stat().st_size == (10 << 20) + slack


@pytest.mark.engines("docker", "podman")
def test_cpus_and_memory_are_as_asked_for(make_launch, run):
    look = (
        "import json, pathlib, shutil\n"
        "group = pathlib.Path('/sys/fs/cgroup')\n"
        "first = lambda *names: next(p.read_text() for n in names if (p := group / n).exists())\n"
        "print(json.dumps({'memory': first('memory.max', 'memory/memory.limit_in_bytes'),\n"
        "  'cpu': first('cpu.max', 'cpu/cpu.cfs_quota_us').split()[0], 'shm': shutil.disk_usage('/dev/shm').total}))"
    )
    ended, log = run(make_launch("python", "-c", look, limits={"cpus": 0.5, "memory_mb": 300}))
    assert ended.code == 0, log
    seen = json.loads(log)
    assert int(seen["memory"]) == 300 << 20
    assert int(seen["cpu"]) == 50_000, "half of each period of 100 ms"
    assert seen["shm"] == 150 << 20


@pytest.mark.attack
def test_an_agent_that_ignores_sigterm_is_killed(make_launch, sandbox):
    stubborn = (
        "import signal, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: print('not now', flush=True))\n"
        "print('ready', flush=True)\n"
        "while True: time.sleep(0.1)\n"
    )
    launch = make_launch("python", "-c", stubborn)
    handle = sandbox.start(launch)
    try:
        _until_logged(launch, b"ready\n")
        handle.terminate()
        _until_logged(launch, b"ready\nnot now\n")
        assert handle.poll() is None
        handle.kill()
        ended = _ended_within(handle, 90)
        assert (ended.code, ended.signal, ended.out_of_memory) == (None, 9, False)
    finally:
        handle.close()
    handle.kill()
    handle.terminate()
    handle.close()
    assert handle.poll() == ended


def test_an_agent_that_heeds_sigterm_ends_by_itself(make_launch, sandbox):
    launch = make_launch("sh", "-c", "trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.1; done")
    handle = sandbox.start(launch)
    try:
        _until_logged(launch, b"ready\n")
        handle.terminate()
        assert _ended_within(handle, 90).code == 3
    finally:
        handle.close()
    assert launch.log.read_bytes() == b"ready\nbye\n"


@pytest.mark.attack
def test_what_forked_twice_ends_with_the_agent(make_launch, run, containers):
    fork_twice = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        while True: open('/output/alive', 'w').write(str(time.time())); time.sleep(0.05)\n"
        "    os._exit(0)\n"
        "while not os.path.exists('/output/alive'): time.sleep(0.05)\n"
        "time.sleep(0.5)\n"
    )
    launch = make_launch("python", "-c", fork_twice)
    assert run(launch)[0].code == 0
    last = (launch.output_dir / "alive").read_text()
    time.sleep(0.3)
    assert (launch.output_dir / "alive").read_text() == last
    assert containers(launch.run_id) == []


def test_a_command_that_is_not_there_is_the_agents_failure_not_the_sandboxes(make_launch, run):
    ended, log = run(make_launch("no-such-program"))
    assert ended.code == 127
    assert b"no-such-program" in log


def test_output_and_resources_can_be_followed_while_the_agent_works(make_launch, sandbox):
    work = (
        "print('begun', flush=True)\n"
        "open('/output/submission.csv', 'w').write('id\\n')\n"
        "hoard = bytearray(b'x' * (50 << 20))\n"
        "while True: pass\n"
    )
    launch = make_launch("python", "-c", work)
    handle = sandbox.start(launch)
    try:
        _until_logged(launch, b"begun\n")
        until = time.monotonic() + 90
        while (usage := handle.usage()).cpu_seconds <= 0.5 or usage.memory_mb <= 50:
            assert time.monotonic() < until, usage
            time.sleep(0.1)
        assert (launch.output_dir / "submission.csv").read_text() == "id\n"
        assert 50 < usage.memory_mb < 256
        assert usage.processes in (0, 1)  # without an endpoint there is no forwarder
        assert abs(time.time() - handle.started_at) < 200
    finally:
        handle.close()


def _until_logged(launch, text, seconds=90):
    until = time.monotonic() + seconds
    while (launch.log.read_bytes() if launch.log.exists() else b"") != text:
        assert time.monotonic() < until, launch.log.read_bytes()
        time.sleep(0.05)


def _ended_within(handle, seconds):
    until = time.monotonic() + seconds
    while (ended := handle.poll()) is None:
        assert time.monotonic() < until, "the agent does not end"
        time.sleep(0.05)
    return ended
