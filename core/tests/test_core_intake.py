"""Accepting an agent's output: whatever lies there, the manifest is made, within limits, and nothing is followed."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mleredux._core.submissions.intake import IntakeLimits, disk_usage, hash_regular, take, walk
from mleredux.models.paths import readable
from mleredux_testing.pytest_plugin import skip_or_fail

pytestmark = pytest.mark.attack

LIMITS = IntakeLimits()
NAMES = st.binary(min_size=1, max_size=12).filter(lambda name: not {0, 47} & set(name) and name not in (b".", b".."))


def taken(root: Path, limits: IntakeLimits = LIMITS) -> tuple[dict[str, int], dict[str, str]]:
    artifacts, left_out = take(root, "output/", "agent", limits)
    return {one.path: one.size for one in artifacts}, {one["path"]: one["reason"] for one in left_out}


def test_links_devices_pipes_and_sockets_are_named_and_left(tmp_path: Path) -> None:
    root = tmp_path / "output"
    root.mkdir()
    (root / "real").write_text("x")
    (root / "link").symlink_to("/etc/passwd")
    (root / "folder-link").symlink_to("/etc", target_is_directory=True)
    (root / "loop").symlink_to("loop")
    os.mkfifo(root / "pipe")
    os.link(root / "real", tmp_path / "outside")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(root / "socket"))
        files, left = taken(root)
    assert files == {}
    assert left == {
        "output/link": "is a link",
        "output/folder-link": "is a link",
        "output/loop": "is a link",
        "output/pipe": "is not a regular file",
        "output/socket": "is not a regular file",
        "output/real": "has more than one hard link",
    }


def test_device_files_are_left(tmp_path: Path) -> None:
    try:
        os.mknod(tmp_path / "zero", 0o20666, os.makedev(1, 5))
    except PermissionError:  # other users, and some containers' roots, make none
        skip_or_fail("root", "devices can't be made here")
    assert taken(tmp_path) == ({}, {"output/zero": "is not a regular file"})


@pytest.mark.slow
def test_a_hundred_thousand_files_are_counted_and_ten_thousand_taken(tmp_path: Path) -> None:
    for number in range(100):
        folder = tmp_path / f"{number:03d}"
        folder.mkdir()
        for name in range(1000):
            os.mknod(folder / str(name))
    began = time.process_time()
    artifacts, left = take(tmp_path, "output/", "agent", LIMITS)
    assert len(artifacts) == 10_000 and len(left) == 1_001
    assert left[-1]["reason"] == "89,000 more files skipped"
    assert left[0]["reason"] == "there are more than 10,000 files"
    assert disk_usage(tmp_path)[1] == 100_101, "folders too"
    assert time.process_time() - began < 60


def test_a_sparse_terabyte_is_left_and_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "huge").touch()
    os.truncate(tmp_path / "huge", 1 << 40)
    began = time.process_time()
    assert taken(tmp_path) == ({}, {"output/huge": "is larger than 4 GiB"})
    assert disk_usage(tmp_path)[0] < 1 << 20 and time.process_time() - began < 1


def test_all_files_together_have_a_limit(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_bytes(b"x" * 100)
    files, left = taken(tmp_path, IntakeLimits(total_bytes=250))
    assert list(files) == ["output/a", "output/b"] and "all files together" in left["output/c"]


def test_what_lies_too_deep_is_left_out_whole(tmp_path: Path) -> None:
    folder = tmp_path
    for level in range(60):
        folder = folder / f"level{level}"
        folder.mkdir()
        (folder / "file").touch()
    files, left = taken(tmp_path)
    assert len(files) == 39 and list(left.values()) == ["is nested more than 40 folders deep"]


def test_long_names_that_make_a_path_too_long_are_named(tmp_path: Path) -> None:
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(25):
        os.mkdir("n" * 255, dir_fd=here)
        below = os.open("n" * 255, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    files, left = taken(tmp_path)
    assert files == {} and "File name too long" in next(iter(left.values()))


@settings(max_examples=200, deadline=None)
@given(st.sets(NAMES, max_size=8))
def test_names_of_any_bytes_are_all_told_apart(names: set[bytes]) -> None:
    told = {readable(name) for name in names}
    assert len(told) == len(names)
    assert all(text.isprintable() and text.encode() for text in told)


@pytest.mark.parametrize(
    ("one", "other"), [(b"\xff", b"\\xff"), (b"\x85", "\x85".encode()), (b"\n", b"\\n"), (b"\\", b"\\\\")]
)
def test_names_that_look_alike_when_escaped_are_told_apart(one: bytes, other: bytes) -> None:
    assert readable(one) != readable(other)


TREES: Any = st.recursive(
    st.one_of(st.binary(max_size=20), st.sampled_from(["link", "pipe"])),
    lambda below: st.dictionaries(NAMES, below, max_size=4),
    max_leaves=12,
)


def _make(path: bytes, tree: Any) -> None:
    if isinstance(tree, dict):
        os.mkdir(path)
        for name, below in tree.items():
            _make(os.path.join(path, name), below)
    elif isinstance(tree, bytes):
        with open(path, "wb") as file:
            file.write(tree)
    elif tree == "link":
        os.symlink(b"..", path)
    else:
        os.mkfifo(path)


def _count(tree: Any, kind: type) -> int:
    if isinstance(tree, dict):
        return sum(_count(below, kind) for below in tree.values())
    return isinstance(tree, kind)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(NAMES, TREES, max_size=4))
def test_everything_in_a_tree_is_either_taken_or_named(
    tmp_path_factory: pytest.TempPathFactory, tree: dict[bytes, Any]
) -> None:
    root = tmp_path_factory.mktemp("tree")
    _make(os.fsencode(root / "output"), tree)
    artifacts, left_out = take(root / "output", "output/", "agent", LIMITS)
    assert len(artifacts) == _count(tree, bytes) and len(left_out) == _count(tree, str)
    paths = [one.path for one in artifacts] + [one["path"] for one in left_out]
    assert len(set(paths)) == len(paths)
    assert all(one.sha256 for one in artifacts)
    assert sum(one.size for one in artifacts) == sum(found.size for found in walk(root / "output") if not found.reason)


def test_a_file_that_becomes_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "file").symlink_to("/etc/passwd")
    with pytest.raises(OSError, match="is a link"):
        hash_regular(tmp_path / "file", 10)
