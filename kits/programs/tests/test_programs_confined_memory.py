"""Submitted code that fills memory which no count of its own processes shows: the kernel's, and what it has dropped.

Each attack wants some gigabytes, and is watched by what is left of the machine's memory: with a control group, and
where none can be made.
"""

from __future__ import annotations

import errno
import os
import platform
import sys
import threading
from pathlib import Path

import pytest
from mleredux_programs import control_group, run_confined

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's")
_WANTED_MB, _ALLOWED_MB = 3_000, 1_200
"""The machine does other work meanwhile."""
_BEGIN = """
import array, ctypes, fcntl, mmap, os, select, socket, struct, sys, time
C, MB = ctypes.CDLL(None, use_errno=True), 1 << 20
kept = []
def until_refused(step):
    while True:
        try:
            step()
        except (OSError, RuntimeError, ValueError):
            return
def fill(end):
    end.setblocking(False)
    until_refused(lambda: end.send(bytes(64 << 10)))
def call(number, *arguments):
    if C.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), "refused")
"""
_MANY = "for _ in range(15):\n    if os.fork() == 0: break\n"
_UNMAPPED = """
C.mmap.restype = ctypes.c_void_p
C.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
C.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
def step():
    begin = C.mmap({})
    if begin == ctypes.c_void_p(-1).value: raise OSError
    ctypes.memset(begin, 1, 16 * MB)
    C.munmap(begin + 4096, 16 * MB - 4096)
until_refused(step)
"""
ATTACKS = {
    "buffers of streams": _MANY
    + """
def step():
    pair = socket.socketpair()
    kept.append(pair)
    for end in pair:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * MB)
        fill(end)
until_refused(step)
""",
    "buffers of datagrams": _MANY
    + """
def step():
    pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    kept.append(pair)
    for end in pair:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * MB)
        fill(end)
until_refused(step)
""",
    "sockets in flight": _MANY
    + """
hold, far = socket.socketpair()
def step():
    first, second = socket.socketpair()
    fill(first); fill(second)
    socket.send_fds(hold, [b"x"], [first.fileno(), second.fileno()])
    first.close(); second.close()
until_refused(step)
""",
    "connections that nobody accepts": _MANY
    + """
def step():
    name = f"{os.getpid()}-{len(kept)}"
    listening = socket.socket(socket.AF_UNIX)
    kept.append(listening)
    listening.bind(name); listening.listen(4096)
    for _ in range(4000):
        end = socket.socket(socket.AF_UNIX)
        end.setblocking(False); end.connect(name)
        fill(end); end.close()
until_refused(step)
""",
    "datagrams of closed senders": _MANY
    + """
def step():
    name = f"{os.getpid()}-{len(kept)}"
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    kept.append(bound)
    bound.bind(name)
    for _ in range(10):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
            end.sendto(bytes(200 << 10), socket.MSG_DONTWAIT, name)
until_refused(step)
""",
    "shared memory of which a page stays mapped": _UNMAPPED.format("None, 16 * MB, 3, 0x21, -1, 0"),
    "the same of a device": "zero = os.open('/dev/zero', os.O_RDWR)\n"
    + _UNMAPPED.format("None, 16 * MB, 3, 1, zero, 0"),
    "pipes": _MANY
    + """
def step():
    reading, writing = os.pipe()
    fcntl.fcntl(writing, 1031, MB)
    os.set_blocking(writing, False)
    until_refused(lambda: os.write(writing, bytes(MB)))
until_refused(step)
""",
    "pages given to pipes": _MANY
    + """
def step():
    reading, writing = os.pipe()
    for _ in range(16):
        area = mmap.mmap(-1, 4 * MB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        area.madvise(14)
        area[::4096] = bytes(1024)
        vector = struct.pack("PN", ctypes.addressof(ctypes.c_char.from_buffer(area)) + 2 * MB, 4096)
        call(278, writing, vector, 1, 8)
until_refused(step)
""",
    "pages of files sent to pipes": _MANY
    + """
def step():
    with open(f"file{os.getpid()}", "wb+") as file:
        file.write(bytes(64 << 10)); file.flush()
        os.sendfile(os.pipe()[1], file.fileno(), 0, 64 << 10)
until_refused(step)
""",
    "shared memory that is dropped": """
def step():
    area = mmap.mmap(-1, 16 * MB)
    kept.append(area)
    for at in range(0, 16 * MB, MB):
        area[at:at + MB] = bytes(MB)
    area.madvise(mmap.MADV_DONTNEED)
until_refused(step)
""",
    "shared memory of children": """
def step():
    area = mmap.mmap(-1, 16 * MB)
    kept.append(area)
    if os.fork() == 0:
        for at in range(0, 16 * MB, MB):
            area[at:at + MB] = bytes(MB)
        os._exit(0)
    os.wait()
until_refused(step)
""",
    "empty files": """
number = [0]
def step():
    number[0] += 1
    os.close(os.open(f"{number[0]:0200}", os.O_CREAT))
until_refused(step)
""",
    "long links": """
number = [0]
def step():
    number[0] += 1
    os.symlink("x" * 4000, f"{number[0]:0200}")
until_refused(step)
""",
    "attributes of files": """
open("file", "w").close()
number = [0]
def step():
    number[0] += 1
    os.setxattr("file", f"user.{number[0]}", bytes(60000))
until_refused(step)
""",
    "tables of pages": """
C.mmap.restype = ctypes.c_void_p
C.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
def step():
    begin = C.mmap(None, 1 << 36, 1, 0x4022, -1, 0)
    if begin == ctypes.c_void_p(-1).value: raise OSError
    C.madvise(ctypes.c_void_p(begin), ctypes.c_size_t(1 << 36), 15)
    for at in range(begin, begin + (1 << 36), 2 * MB):
        ctypes.c_char.from_address(at).value
until_refused(step)
""",
    "mappings": "for _ in range(60):\n    if os.fork() == 0: break\n"
    + """
C.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
C.mmap.restype = ctypes.c_void_p
C.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
begin = C.mmap(None, 512 * MB, 1, 0x4022, -1, 0)
for at in range(begin, begin + 512 * MB, 8192):
    if C.mprotect(at, 4096, 0): break
""",
    "locks of ranges": _MANY
    + """
files = [open(f"lock{os.getpid()}-{number}", "w") for number in range(200)]
for file in files:
    for number in range(1000):
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 2 * number)
""",
    "timers": "timer = ctypes.c_void_p()\nwhile C.timer_create(0, None, ctypes.byref(timer)) == 0: pass",
    "polled files": _MANY
    + """
files = [os.eventfd(0) for _ in range(100)]
for _ in range(100):
    poll = select.epoll()
    kept.append(poll)
    for file in files: poll.register(file)
""",
    "files polled under former descriptors": _MANY
    + """
files = [os.eventfd(0) for _ in range(60)]
def step():
    poll = select.epoll()
    kept.append(poll)
    for at in range(130, 250):
        for file in files:
            os.dup2(file, at)
            poll.register(at)
        os.close(at)
until_refused(step)
""",
    "hashes of locks": _MANY
    + """
C.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
for bits in range(24, 8, -1):
    if C.prctl(78, 1, 1 << bits, 0, 0) == 0: break
""",
    "programs of filters": _MANY
    + """
C.prctl(38, 1, 0, 0, 0)
lines = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000) * 4096)
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 4096, ctypes.addressof(lines)))
while C.prctl(22, 2, program, 0, 0) == 0: pass
""",
    "stacks of threads": "import threading\n"
    "until_refused(lambda: threading.Thread(target=time.sleep, args=(2,)).start())",
    "processes that wait for one another": "reading, writing = os.pipe()\n"
    "for _ in range(60):\n    if os.fork() == 0: break\nelse: time.sleep(1)\n"
    "os.close(writing); os.read(reading, 1); held = bytearray(60 * MB)",
    "a chain of processes": "for _ in range(60):\n    kept.append(bytearray(b'1') * (8 * MB))\n    if os.fork(): break",
    "processes whose parents have ended": "C.prctl(36, 1, 0, 0, 0)\nfor _ in range(60):\n    if os.fork() == 0:\n"
    "        if os.fork() == 0:\n            held = bytearray(b'1') * (60 * MB); time.sleep(2)\n        os._exit(0)",
    "many processes": "for _ in range(6): os.fork()\nheld = bytearray(100 * MB)",
}

REFUSED = {
    "System V shared memory": "call(29, 0, 64 * MB, 0o1600)",
    "System V semaphores": "call(64, 0, 32000, 0o1600)",
    "System V messages": "call(68, 0, 0o1600)",
    "message queues": "call(240, b'queue', os.O_CREAT | os.O_RDWR, 0o600, None)",
    "keys": "call(248, b'user', b'key', bytes(30000), 30000, -3)",
    "questions for keys": "call(249, b'user', b'key', None, -3)",
    "rings of keys": "call(250, 0, -3, 1)",
    "files without a name": "os.memfd_create('a')",
    "secret files without a name": "call(447, 0)",
    "watches of files": "call(253)",
    "newer watches of files": "call(294, 0)",
    "watches of file systems": "call(300, 0x200, 0)",
    "pages given to pipes": "call(278, os.pipe()[1], struct.pack('PN', ctypes.addressof(ctypes.c_char()), 1), 1, 0)",
    "rings of input and output": "call(425, 4096, ctypes.create_string_buffer(120))",
    "contexts of input and output": "call(206, 60000, ctypes.byref(ctypes.c_ulong()))",
    "events of the processor": "call(298, struct.pack('IIQ112x', 1, 120, 0), 0, -1, -1, 0)",
    "programs of the kernel": "call(321, 0, ctypes.create_string_buffer(120), 120)",
    "faults of pages": "call(323, 1)",
    "rules of a sandbox": "call(444, struct.pack('Q', 1), 8, 0)",
    "filters of calls": "call(317, 2, 0, None)",
    "files that a thread does not share": "call(436, 200, 250, 2)",
    "threads that do not share files": "call(56, 0x10F00 & ~0x400, None, None, None, 0)",
    "namespaces": "call(272, 0x10000000)",
    "sockets of the kernel": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
    "sockets of ciphers": "socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET)",
    "sockets of virtual machines": "socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)",
    "policies of memory": "call(237, None, 0, 0, None, 0, 0)",
    "policies of a thread's memory": "call(238, 0, None, 0)",
    "hashes of locks": "call(157, 78, 1, 1 << 10, 0)",
    "options of newer kernels": "call(157, 100, 0, 0, 0)",
    "other processors": "os.sched_setaffinity(0, os.sched_getaffinity(0))",
}
MISSING = {"calls of newer kernels": 467, "calls of x32": 1 << 30}


def _available_mb() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")) >> 10


class _Lowest(threading.Thread):
    """What is left of the machine's memory, at its lowest."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.ended = threading.Event()
        self.mb = _available_mb()

    def run(self) -> None:
        while not self.ended.wait(0.02):
            self.mb = min(self.mb, _available_mb())


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_kind_of_memory_exceeds_the_limit(attack: str, counted_by: str) -> None:
    before = _available_mb()
    if before < _WANTED_MB:
        pytest.skip("the machine has not the memory that the attacks want")
    script, lowest = f"{_BEGIN}{ATTACKS[attack]}\ntime.sleep(1)", _Lowest()
    lowest.start()
    result = run_confined(["-c", script], {}, [], seconds=8, memory_mb=200, disk_mb=50)
    lowest.ended.set()
    lowest.join()
    print(attack, counted_by, before - lowest.mb, result)
    assert before - lowest.mb < _ALLOWED_MB, result


@pytest.mark.parametrize("reaper", [0, 1])
def test_the_watch_counts_processes_whose_parents_have_ended(reaper: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the four has a third of the limit."""
    monkeypatch.setattr(control_group, "_parents", lambda: iter(()))
    script = f"""{_BEGIN}
C.prctl(36, {reaper}, 0, 0, 0)
for number in range(4):
    if os.fork() == 0:
        if os.fork() == 0:
            held = bytearray(70 * MB)
            time.sleep(60)
        os._exit(0)
    os.wait()
time.sleep(60)
"""
    result = run_confined(["-c", script], {}, [], seconds=50, memory_mb=200, disk_mb=50)
    assert (result.code, result.limit) == (None, "memory"), result.log


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers of the calls are those of x86_64")
@pytest.mark.parametrize("call", [*REFUSED, *MISSING])
def test_memory_of_the_kernel_that_nothing_counts_is_refused(call: str) -> None:
    tried, expected = REFUSED.get(call), errno.EPERM if call in REFUSED else errno.ENOSYS
    tried = tried or f"call({MISSING[call]})"
    script = f"{_BEGIN}\ntry:\n    {tried}\n    print('given')\nexcept OSError as error:\n    print(error.errno)"
    assert run_confined(["-c", script], {}, [], seconds=20).log == str(expected)


def test_a_program_is_in_a_control_group_that_goes_with_it() -> None:
    with control_group.control_group(100, 10) as group:
        if group is None:
            pytest.skip("this process may not make a control group")
    result = run_confined(["-c", "bytearray(10**6)"], {}, [])
    assert (result.code, [*Path("/sys/fs/cgroup").glob(f"**/mleredux-confined-{os.getpid()}-*")]) == (0, [])
