"""An agent's output: every byte of it once, whatever happens to the program that takes it down."""

from __future__ import annotations

import hashlib
import os
import pickle
import secrets
import signal
import subprocess
import sys
import time

import pytest
from mleredux.errors import SandboxError
from mleredux_containers.profile import labels

FOLLOW = """
import pickle, sys, time
from mleredux._core.plugins import current
with open(sys.argv[1], "rb") as file:
    launch = pickle.load(file)
handle = current().sandbox(sys.argv[2]).start(launch)
print(handle.id, flush=True)
time.sleep(600)
"""


def test_bytes_that_are_not_text_arrive_as_they_are(make_launch, run):
    data = bytes(byte for byte in range(256) if byte != 10) * 3 + b"\n"
    ended, log = run(make_launch("python", "-c", f"import os; os.write(1, {data!r})"))
    assert ended.code == 0
    assert log == data


def test_a_long_output_and_lines_longer_than_any_buffer_are_complete(make_launch, run):
    lines = "".join(f"{number:07d}{'x' * 90}\n" for number in range(100_000)) + ("y" * 300_000 + "\n") * 2
    program = (
        "import sys\n"
        "for number in range(100_000): sys.stdout.write(f\"{number:07d}{'x' * 90}\\n\")\n"
        "sys.stdout.write(('y' * 300_000 + chr(10)) * 2)\n"
    )
    ended, log = run(make_launch("python", "-c", program))
    assert ended.code == 0
    assert len(log) == len(lines)
    assert hashlib.sha256(log).digest() == hashlib.sha256(lines.encode()).digest()


def test_both_streams_are_taken_down_after_what_the_log_holds_already(engine, make_launch, run):
    launch = make_launch("sh", "-c", "echo out; sleep 1; echo err >&2; sleep 1; printf end")
    launch.log.write_bytes(b"an earlier attempt\n")
    log = run(launch)[1]
    assert log.removesuffix(b"\n") == b"an earlier attempt\nout\nerr\nend"
    assert engine != "docker" or log.endswith(b"\n"), "its engine ends the last line"


def start_elsewhere(launch, tmp_path, engine, first=""):
    """Start the launch from another program; gives that program, after the container runs."""
    (tmp_path / "launch").write_bytes(pickle.dumps(launch))
    arguments = [sys.executable, "-c", first + FOLLOW, str(tmp_path / "launch"), engine]
    program = subprocess.Popen(arguments, stdout=subprocess.PIPE)
    assert len(program.stdout.readline()) == 65
    return program


def until_logged(launch, needle, seconds=120):
    until = time.monotonic() + seconds
    while not launch.log.exists() or needle not in launch.log.read_bytes():
        assert time.monotonic() < until, "the output does not come"
        time.sleep(0.02)


COUNT = "import time\nfor n in range(1500):\n    print(f'line {n}', flush=True)\n    time.sleep(0.002)\n"


@pytest.mark.parametrize("adopted_late", [False, True], ids=["while it runs", "after it ended"])
def test_a_container_is_adopted_after_the_program_was_killed_and_no_byte_is_lost_or_repeated(
    adopted_late, engine, make_launch, sandbox, tmp_path, wait_for_end, containers
):
    launch = make_launch("python", "-c", COUNT)
    launch.log.write_bytes(b"an earlier attempt\n")
    program = start_elsewhere(launch, tmp_path, engine)
    until_logged(launch, b"line 200\n")
    os.kill(program.pid, signal.SIGKILL)
    program.wait()
    if adopted_late:
        time.sleep(6)
    handle = sandbox.attach(launch)
    assert handle is not None
    assert wait_for_end(handle).code == 0
    handle.close()
    expected = "an earlier attempt\n" + "".join(f"line {number}\n" for number in range(1500))
    assert launch.log.read_text() == expected
    assert containers(launch.run_id) == []
    assert sandbox.attach(launch) is None


SMALL_ENGINE_LOG = "from mleredux_sandbox_docker import container\ncontainer.LOG_FILES, container.LOG_FILE_MB = 2, 1\n"
MUCH = """
import sys, time
for n in range(17_000):
    print(f"out {n} {'x' * 90}")
    if n % 500 == 0:
        sys.stdout.flush()
        time.sleep(0.12)  # an engine that keeps two files of 1 MB skips one where its reader is that far behind
for n in range(17_000, 17_600):
    print("out", n, flush=True)
    print("err", n, file=sys.stderr, flush=True)
    time.sleep(0.002)
"""


def engine_log(launch, containers):
    from mleredux_sandbox_docker.engine import connect

    client = connect()
    try:
        return client.logs(containers(launch.run_id)[0], stdout=True, stderr=True, tail="all")
    finally:
        client.close()


@pytest.mark.engines("docker")  # Podman's output goes into the log without anything between
@pytest.mark.parametrize("note", ["as it was", "older than the log", "lost with the log's end"])
def test_where_the_engine_has_dropped_the_beginning_nothing_is_lost_or_repeated(
    note, engine, make_launch, sandbox, tmp_path, wait_for_end, containers
):
    launch = make_launch("python", "-c", MUCH)
    noted = launch.control_dir / "container.log-note"
    program = start_elsewhere(launch, tmp_path, engine, first=SMALL_ENGINE_LOG)
    until_logged(launch, b"out 17050\n")
    older = noted.read_bytes()
    until_logged(launch, b"out 17100\n")
    os.kill(program.pid, signal.SIGKILL)
    program.wait()
    if note != "as it was":
        noted.write_bytes(older)  # as if killed after the log was written, before the note was
    if note == "lost with the log's end":
        os.truncate(launch.log, launch.log.stat().st_size - 7)  # amid a line
    held = launch.log.read_bytes()
    assert not engine_log(launch, containers).startswith(held[:100]), "the engine still has the beginning"
    handle = sandbox.attach(launch)
    assert wait_for_end(handle).code == 0
    handle.close()
    assert launch.log.read_bytes().startswith(held)
    lines = launch.log.read_text().splitlines()
    assert [line.split()[1] for line in lines if line[:3] == "out"] == [str(number) for number in range(17_600)]
    assert [line.split()[1] for line in lines if line[:3] == "err"] == [str(number) for number in range(17_000, 17_600)]
    assert len(lines) == 18_200


def test_two_that_follow_the_same_container_write_its_output_once(make_launch, sandbox, wait_for_end):
    launch = make_launch("python", "-c", COUNT)
    first = sandbox.start(launch)
    second = sandbox.attach(launch)
    assert (second.id, second.started_at) == (first.id, first.started_at)
    assert wait_for_end(first).code == wait_for_end(second).code == 0
    first.close()
    second.close()
    assert launch.log.read_text() == "".join(f"line {number}\n" for number in range(1500))


def test_nothing_is_adopted_where_nothing_was_started(make_launch, sandbox):
    assert sandbox.attach(make_launch("true")) is None


def test_a_container_that_was_made_but_never_started_is_removed_not_adopted(
    make_launch, sandbox, containers, plain, program
):
    launch = make_launch("true")
    told = [f"--label={name}={value}" for name, value in labels(launch.run_id, launch.owner).items()]
    program("create", *told, plain.reference, "true")
    assert sandbox.attach(launch) is None
    assert containers(launch.run_id) == []


def test_what_a_killed_program_left_behind_is_swept_away_and_nothing_else(
    engine, make_launch, sandbox, tmp_path, containers
):
    mark = secrets.token_hex(4)  # other tests may run beside this one on the same engine
    alive, stranger_id = f"test-alive-{mark}", f"test-stranger-{mark}"
    launch = make_launch("sleep", "300", owner=f"sweep-{mark}")
    other = make_launch("sleep", "300", run_id=alive, owner=f"sweep-{mark}", log=tmp_path / "other.log")
    stranger = make_launch("sleep", "300", run_id=stranger_id, owner="somebody-else", log=tmp_path / "stranger.log")
    program = start_elsewhere(launch, tmp_path, engine)
    os.kill(program.pid, signal.SIGKILL)
    program.wait()
    handles = [sandbox.start(other), sandbox.start(stranger)]
    try:
        assert list(sandbox.sweep(launch.owner, lambda run_id: run_id == alive)) == [launch.run_id]
        assert containers(launch.run_id) == []
        assert len(containers(alive)) == len(containers(stranger_id)) == 1
        assert list(sandbox.sweep(launch.owner, lambda run_id: run_id == alive)) == []
    finally:
        for handle in handles:
            handle.close()


def test_a_start_that_fails_leaves_nothing_behind(make_launch, sandbox, containers, monkeypatch):
    launch = make_launch("true")
    monkeypatch.setenv("MLEREDUX_DOCKER_RUNTIME", "no-such-runtime")
    monkeypatch.setenv("MLEREDUX_PODMAN_OPTIONS", "--runtime /usr/bin/no-such-runtime")
    with pytest.raises(SandboxError, match="no-such-runtime"):
        sandbox.start(launch)
    monkeypatch.undo()
    assert containers(launch.run_id) == []


def test_a_container_that_somebody_removed_is_an_end_not_a_crash(make_launch, sandbox, program):
    launch = make_launch("sleep", "300")
    handle = sandbox.start(launch)
    program("rm", "--force", handle.id)
    assert handle.poll().signal == 9
    handle.terminate()
    handle.kill()
    assert handle.usage().memory_mb is None
    handle.close()
