"""Measure by how much programs exceed their memory limit where no control group can be made.

`uv run python benchmarks/confined_memory.py [ATTACK…]` runs each attack three times, with at most 64 processes, and
prints the highest sum of their anonymous memory, read as often as possible meanwhile. Run it as root on Linux, without
other containers: their processes would be counted.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import psutil
from _measuring import machine, table
from mleredux_programs import control_group, run_confined

LIMIT_MB, ROUNDS = 250, 3
_PAGE = os.sysconf("SC_PAGE_SIZE")
_BEGIN = """
import ctypes, mmap, os, time
MB = 1 << 20
ONE = bytes(MB)
def fill(count):
    held = mmap.mmap(-1, count * MB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for place in range(count):
        held[place * MB : (place + 1) * MB] = ONE
    return held
def child(work):
    if os.fork() == 0:
        held = work()
        time.sleep(2)
        os._exit(0)
"""
ATTACKS = {
    "chain": "kept = []\nfor _ in range(60):\n    kept.append(fill(8))\n    if os.fork(): break",
    "chain of large ones": "kept = []\nfor _ in range(60):\n    kept[:] = [fill(40)]\n    if os.fork(): break",
    "parents that end": "for number in range(60):\n    child(lambda: fill(40))\n    if os.fork():\n"
    "        if number: os._exit(0)\n        break",
    "fan": "for _ in range(60): child(lambda: fill(60))",
    "short-lived": "end = time.time() + 3\nwhile time.time() < end:\n    try:\n        if os.fork():\n"
    "            held = fill(40); time.sleep(0.03); os._exit(0) if os.getpid() > 2 else None\n    except OSError: pass",
    "copy on write": "held = fill(60)\ndef write():\n"
    "    for place in range(60): held[place * MB : (place + 1) * MB] = ONE\n"
    "for _ in range(60): child(write)",
    "all at once": "reading, writing = os.pipe()\ndef wait():\n"
    "    os.close(writing); os.read(reading, 1); return fill(60)\n"
    "for _ in range(60): child(wait)\nos.close(writing)",
    "orphans": "ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)\nfor _ in range(50):\n    if os.fork() == 0:\n"
    "        child(lambda: fill(40)); os._exit(0)",
}


class Peak(threading.Thread):
    """Reads the anonymous memory of all confined processes until it is ended.

    Attributes:
        peak: The highest sum in bytes.
        count: The highest number of processes.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.ended = threading.Event()
        self.peak = self.count = 0
        self._namespace = Path("/proc/self/ns/pid").stat()

    def run(self) -> None:
        """Read until the end."""
        while not self.ended.wait(0.001):
            sizes = [size for process in psutil.pids() if (size := self._size(process)) is not None]
            self.peak, self.count = max(self.peak, sum(sizes)), max(self.count, len(sizes))

    def _size(self, process: int) -> int | None:
        """Return the bytes of a process in another namespace; None for others and for those that have ended."""
        try:
            if os.path.samestat(Path(f"/proc/{process}/ns/pid").stat(), self._namespace):
                return None
            _, resident, shared, *_ = Path(f"/proc/{process}/statm").read_text().split()
        except OSError:
            return None
        return (int(resident) - int(shared)) * _PAGE


def main() -> None:
    """Print the peak of each attack."""
    control_group._parents = lambda: iter(())  # as where none can be made
    rows = []
    for name in sys.argv[1:] or ATTACKS:
        peaks = []
        for _ in range(ROUNDS):
            peak = Peak()
            peak.start()
            script = f"{_BEGIN}{ATTACKS[name]}\ntime.sleep(2)"
            result = run_confined(["-c", script], {}, [], seconds=8, memory_mb=LIMIT_MB, disk_mb=50)
            peak.ended.set()
            peak.join()
            peaks.append((peak.peak >> 20, peak.count, result.limit or f"code {result.code}"))
        rows.append((name, *(f"{size} ({count}, {end})" for size, count, end in peaks)))
    print(f"{machine()} Limit: {LIMIT_MB} MB.\n")
    print(table(("attack", *(f"{number}: MB (processes, end)" for number in range(1, ROUNDS + 1))), *rows))


if __name__ == "__main__":
    main()
