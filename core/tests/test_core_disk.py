"""The disk of a run: a file system of its own that goes again, however the program that opened it ends."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from mleredux._core.sandboxes import volume
from mleredux._core.sandboxes.mounts import mount_image, unmount
from mleredux._core.sandboxes.variables import gpu_environment
from mleredux._core.sandboxes.volume import close_disk, open_disk
from mleredux._core.store.sparse import copy, move_contents
from mleredux._core.submissions.intake import disk_usage
from mleredux.models import Cause, State
from mleredux_support.disk_attacks import DISK_ATTACKS_PLUGIN

needs_root = pytest.mark.usefixtures("root")


def mounted(path: Path) -> list[str]:
    return [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(path) in line]


def loops() -> str:
    return subprocess.run(["losetup", "--list", "--noheadings"], capture_output=True, text=True).stdout


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    for name in ("output", "submissions", "logs"):
        (tmp_path / "run" / name).mkdir(parents=True)
    return tmp_path / "run"


@needs_root
def test_what_was_written_is_kept_with_its_holes_modes_and_names(run_dir: Path) -> None:
    disk = open_disk(run_dir, 64, going_on=False)
    assert disk.enforced_by == "volume" and mounted(run_dir)
    output = run_dir / "output"
    (output / "a").mkdir(mode=0o000)
    (output / "a" / "file").write_bytes(b"x" * 5000)
    (output / "link").symlink_to("/etc/passwd")
    os.link(output / "a" / "file", output / "second")
    os.mkfifo(output / "pipe")
    with (output / "sparse").open("wb") as file:
        os.ftruncate(file.fileno(), 60 << 20)
        os.pwrite(file.fileno(), b"end", (60 << 20) - 3)
    os.utime(output / "sparse", (1, 2))
    deep = os.open(output, os.O_RDONLY)
    for _ in range(60):
        os.mkdir("d" * 200, dir_fd=deep)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=deep)
        os.close(deep)
        deep = below
    os.close(deep)
    (run_dir / "logs" / "agent.log").write_text("said")
    (disk.scratch / "gone").write_text("x")
    assert disk.close() == []
    assert not mounted(run_dir) and sorted(path.name for path in run_dir.iterdir()) == [
        *("logs", "output", "submissions", "task")
    ]
    assert (output / "a" / "file").read_bytes() == b"x" * 5000 and (output / "second").stat().st_nlink == 2
    assert (output / "link").is_symlink() and (output / "pipe").is_fifo()
    status = (output / "sparse").stat()
    assert (status.st_size, status.st_blocks * 512, status.st_mtime) == (60 << 20, 4096, 2)
    assert (run_dir / "logs" / "agent.log").read_text() == "said"
    assert disk_usage(run_dir)[0] < 1 << 20


@needs_root
@pytest.mark.parametrize("moment", ["while it works", "after a reboot", "while it is closed"])
def test_a_killed_program_loses_nothing_and_leaves_nothing(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    content = os.urandom(5 << 20)
    disk = open_disk(run_dir, 64, going_on=False)
    (run_dir / "output" / "1").write_bytes(content)
    (run_dir / "output" / "2").write_bytes(content)
    if moment == "after a reboot":
        for place in ("output", "submissions", "task", "logs/agent.log", ".volume"):
            unmount(run_dir / place)
    elif moment == "while it is closed":
        parts = iter(range(7))

        def killed(*_given: Any) -> None:
            if next(parts, None) is None:
                raise KeyboardInterrupt

        monkeypatch.setattr("mleredux._core.store.sparse._punch", killed)
        with pytest.raises(KeyboardInterrupt):
            disk.close()
        monkeypatch.undo()
    else:
        assert open_disk(run_dir, 64, going_on=True).enforced_by == "volume"
    close_disk(run_dir)
    assert not mounted(run_dir) and not (run_dir / ".volume.img").exists()
    assert [(run_dir / "output" / name).read_bytes() == content for name in "12"] == [True, True]
    close_disk(run_dir)


@needs_root
def test_moving_never_takes_the_room_twice(tmp_path: Path, until: Any) -> None:
    with (tmp_path / "image").open("wb") as file:
        file.truncate(64 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-b4096", tmp_path / "image"], check=True)
    for name in ("from", "to"):
        (tmp_path / name).mkdir()
    mount_image(tmp_path / "image", tmp_path / "from")
    try:
        (tmp_path / "from" / "file").write_bytes(os.urandom(30 << 20))
        os.sync()
        before = disk_usage(tmp_path)[0]
        move_contents(tmp_path / "from", tmp_path / "to")
        # The kernel frees the host's blocks in the background, once it has written that they are free.
        until(lambda: disk_usage(tmp_path)[0] < before + (16 << 20))
        os.sync()
        until(lambda: disk_usage(tmp_path)[0] < before + (2 << 20))
        assert (tmp_path / "to" / "file").stat().st_size == 30 << 20
    finally:
        unmount(tmp_path / "from")


def test_zeros_that_were_written_become_holes(tmp_path: Path) -> None:
    data = b"a" + bytes(3 << 20) + os.urandom(10_000) + bytes(100) + b"b"
    (tmp_path / "a").write_bytes(data)
    with (tmp_path / "a").open("rb") as source, (tmp_path / "b").open("wb") as target:
        held = copy(source.fileno(), target.fileno(), len(data))
    assert (tmp_path / "b").read_bytes() == data
    assert held < 30_000 and (tmp_path / "b").stat().st_blocks * 512 < 64_000


@needs_root
@pytest.mark.slow
def test_runs_without_an_agent_are_closed_by_the_next_start_or_deleted(toy: Any, until: Any) -> None:
    programs = [toy.start("toy", "--agent", "sleeper", "--time-limit", "100s") for _ in range(2)]
    until(lambda: sum(b"ready" in run.agent_log.read_bytes() for run in _runs(toy)) == 2)
    for program in programs:
        program.kill()
        program.wait()
    swept, deleted = _runs(toy)
    assert mounted(swept.path) and mounted(deleted.path)
    (swept.output_dir / "kept").write_text("x")
    for process in toy.processes(deleted):
        process.kill()
    toy.store.delete(deleted)
    assert toy.run("copy").state is State.DONE
    assert not mounted(toy.store.path) and (swept.output_dir / "kept").read_text() == "x"
    assert not deleted.path.exists() and str(toy.home) not in loops()


def _runs(toy: Any) -> list[Any]:
    return [run for run in map(toy.store.get, sorted(toy.store.ids())) if run.agent_log.exists()]


@pytest.mark.parametrize("mode", ["volume", "walk"])
def test_the_ledger_says_what_held_the_limit(toy: Any, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    if mode == "walk" or os.geteuid():
        monkeypatch.setenv(volume.VARIABLE, "walk")
        mode = "walk"
    run = toy.run("fill", limits={"disk_mb": 16})
    assert (run.state, run.cause, run.report.limit) == (State.FAILED, Cause.OUT_OF_DISK, "disk")
    assert (run.report.ledger.disk.limit_mb, run.report.ledger.disk.enforced_by) == (16, mode)
    assert not mounted(toy.store.path)


@needs_root
def test_a_full_disk_of_the_host_is_not_the_agents_failure(toy: Any) -> None:
    toy.store.path.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96m", "tmpfs", toy.store.path], check=True)
    try:
        run = toy.run("trickle")
        assert (run.state, run.cause) == (State.FAILED, Cause.ENVIRONMENT_BROKE)
        assert "nearly full" in run.message
    finally:
        subprocess.run(["umount", "-l", toy.store.path], check=True)


@pytest.mark.attack
def test_the_walk_counts_folders_long_paths_and_what_is_shut(tmp_path: Path) -> None:
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(30):  # beyond the longest path
        os.mkdir("d" * 200, 0o700, dir_fd=here)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    with open(os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=here), "wb") as file:
        file.write(b"x" * (1 << 20))
    os.close(here)
    (tmp_path / "shut").mkdir()
    (tmp_path / "shut" / "file").write_bytes(b"x" * (1 << 20))
    (tmp_path / "shut").chmod(0o300)
    size, files = disk_usage(tmp_path)
    assert size >= (2 << 20) + 32 * 4096 and files == 34


@pytest.mark.parametrize(
    ("ids", "assigned", "cuda", "hip"),
    [
        (("2", "3"), False, "2,3", "0,1"),
        (("2", "3"), True, "0,1", "0,1"),
        (("GPU-a", "GPU-b"), True, "GPU-a,GPU-b", "0,1"),
        ((), False, "-1", "-1"),
    ],
)
def test_gpus_are_named_by_all_variables(ids: tuple[str, ...], assigned: bool, cuda: str, hip: str) -> None:
    told = gpu_environment(ids, assigned=assigned)
    assert (told["CUDA_VISIBLE_DEVICES"], told["ROCR_VISIBLE_DEVICES"], told["HIP_VISIBLE_DEVICES"]) == (
        cuda,
        cuda,
        hip,
    )
    assert told["NVIDIA_VISIBLE_DEVICES"] == (",".join(ids) or "void")


def test_gpus_of_a_slot_reach_an_agent(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLEREDUX_GPUS", "4,7")
    run = toy.run("environment", limits={"gpus": 2})
    assert "CUDA_VISIBLE_DEVICES=4,7" in run.agent_log.read_text()
    assert "CUDA_VISIBLE_DEVICES=-1" in toy.run("environment").agent_log.read_text()


def test_an_agent_is_told_what_holds_in_its_sandbox(toy: Any) -> None:
    told = (toy.run("copy").path / "task" / "instructions.md").read_text()
    assert "You are not isolated" in told and "holds the answers" in told
    assert "not included" not in told and "no access" not in told and "read only" not in told


def test_the_attacks_are_a_plugin() -> None:
    from mleredux._core.plugins import Catalogue

    assert Catalogue(load=[DISK_ATTACKS_PLUGIN]).agent("disk-unlinked").limits.disk_mb == 48
