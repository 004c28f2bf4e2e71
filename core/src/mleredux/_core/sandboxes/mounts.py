"""Mounts by direct Linux system calls: a file as a file system, a folder at a second path. Requires root."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import re
import struct
from collections.abc import Sequence
from pathlib import Path

_LOOP_GET_FREE, _LOOP_CONFIGURE, _AUTOCLEAR, _TRIES = 0x4C82, 0x4C0A, 4, 20
_OPEN_TREE, _CLONE, _HERE = 428, 1, -100
_NOSUID, _NODEV, _READ_ONLY, _NOATIME, _BIND, _DETACH = 2, 4, 1, 1024, 4096, 2
_SAFE = _NOSUID | _NODEV | _NOATIME

_LIBC = ctypes.CDLL(None, use_errno=True)
_ESCAPED = re.compile(rb"\\([0-7]{3})")


def mount_image(image: Path, place: Path) -> None:
    """Mount a file that contains an ext4 file system; its loop device is freed on unmounting.

    Raises:
        OSError: This process or the kernel can't do this.
    """
    opened, device = _loop_device(image)
    try:
        # Space freed in the volume is freed on the host too; inode tables take up space only when they are used.
        _mount(device, place, "ext4", _SAFE, "discard,noinit_itable")
    finally:
        os.close(opened)


def mount_bind(source: Path, place: Path) -> None:
    """Make a folder or file visible at a second path.

    Raises:
        OSError: This process can't do this.
    """
    _mount(str(source), place, "", _BIND, "")


def mount_shown(folder: Path, place: Path) -> None:
    """Mount a folder read-only at a second path, with an overlay whose entry in the mount table does not name the
    folder.

    Raises:
        OSError: This process or the kernel can't do this.
    """
    mount_overlay(place, [folder, place], _SAFE | _READ_ONLY)


def mount_overlay(place: Path, lower: Sequence[Path], flags: int = _NODEV | _NOATIME, **more: Path) -> None:
    """Mount layers of files.

    Args:
        place: The mount point.
        lower: The folders of the layers, the uppermost first.
        flags: Flags of the mount.
        more: For writes, which do not change the layers: an empty folder `upperdir` for the written files, and another
            one next to it, `workdir`.

    Raises:
        OSError: This process or the kernel can't do this.
    """
    opened: list[str] = []

    def name(path: Path) -> str:  # short, and reveals nothing
        opened.append(f"/proc/self/fd/{os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)}")
        return opened[-1]

    try:
        options = {"lowerdir": ":".join(map(name, lower)), **{key: name(path) for key, path in more.items()}}
        _mount("overlay", place, "overlay", flags, ",".join(f"{key}={value}" for key, value in options.items()))
    finally:
        for path in opened:
            os.close(int(path.rpartition("/")[2]))


def unmount(place: Path) -> None:
    """Unmount whatever is mounted at a path; processes that use it keep it, invisible to others, until they end."""
    while os.path.ismount(place):
        if _LIBC.umount2(os.fsencode(place), _DETACH):
            raise _error(place)


def unmount_below(folder: Path) -> None:
    """Unmount everything that is mounted at or under a folder; do nothing if that is not possible."""
    if os.geteuid():
        return
    with contextlib.suppress(OSError):
        top = os.path.realpath(os.fsencode(folder))
        lines = Path("/proc/self/mountinfo").read_bytes().splitlines()
        places = [_ESCAPED.sub(lambda match: bytes([int(match[1], 8)]), line.split()[4]) for line in lines]
        for place in reversed(places):
            if place == top or place.startswith(top + b"/"):
                unmount(Path(os.fsdecode(place)))


def _mount(source: str, place: Path, kind: str, flags: int, options: str) -> None:
    words = [os.fsencode(word) for word in (source, place, kind)]
    if _LIBC.mount(*words, ctypes.c_ulong(flags), options.encode()):
        raise _error(place)


def _loop_device(image: Path) -> tuple[int, str]:
    """Return an open loop device of a file, and its path; the device is freed when its last user, a mount or a process,
    is gone."""
    backing = _open_nameless(image)
    # struct loop_config: file, block size, struct loop_info64 with its flags, and reserved bytes
    config = struct.pack("=II52xI176x64x", backing, 0, _AUTOCLEAR)
    try:
        for attempt in range(_TRIES):
            with Path("/dev/loop-control").open("rb") as control:
                device = f"/dev/loop{fcntl.ioctl(control, _LOOP_GET_FREE)}"
            opened = os.open(device, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.ioctl(opened, _LOOP_CONFIGURE, config)
                return opened, device
            except OSError as error:
                os.close(opened)
                if error.errno != errno.EBUSY or attempt + 1 == _TRIES:  # another process took it first
                    raise
        raise OSError(errno.EBUSY, "no loop device is free")
    finally:
        os.close(backing)


def _open_nameless(image: Path) -> int:
    """Open a file so that the kernel does not record its folder: every container can read a loop device's file name."""
    folder = _LIBC.syscall(_OPEN_TREE, _HERE, os.fsencode(image.parent), _CLONE | os.O_CLOEXEC)
    if folder < 0:
        return os.open(image, os.O_RDWR | os.O_CLOEXEC)
    try:
        return os.open(image.name, os.O_RDWR | os.O_CLOEXEC, dir_fd=folder)
    finally:
        os.close(folder)


def _error(place: Path) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), str(place))
