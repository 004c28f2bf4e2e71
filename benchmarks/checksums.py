"""Measure how fast files are checked: our pass, also with one thread, blocks of 4 KB, and a repeated check.

    python benchmarks/checksums.py [--gigabytes 4] [--files 8] [--dir DIR] [--markdown docs/benchmarks.md]

The rival is the published benchmark, which reads files sequentially in blocks of 4 KB. Files are created once and read
once before any measurement, so that all methods find them in the page cache. Each method is the best of five.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from mleredux._core.data.checksums import differences, md5, md5s

_RIVAL_BLOCK = 4096
_ROUNDS = 5
Row = tuple[str, float, float, float]
"""Method, wall seconds, CPU seconds, GB/s."""


def small_blocks(path: Path) -> str:
    """Return the MD5 of a file that is read in blocks of 4 KB."""
    digest = hashlib.md5(usedforsecurity=False)
    with path.open("rb") as file:
        for block in iter(lambda: file.read(_RIVAL_BLOCK), b""):
            digest.update(block)
    return digest.hexdigest()


def make_files(folder: Path, count: int, size: int) -> list[Path]:
    """Create files of random bytes."""
    block = random.Random(0).randbytes(1 << 20)
    paths = [folder / f"{number}.bin" for number in range(count)]
    for number, path in enumerate(paths):
        with path.open("wb") as file:
            file.write(number.to_bytes(8, "big"))
            for _ in range(size // len(block)):
                file.write(block)
    return paths


def best(work: Callable[[], object]) -> tuple[float, float]:
    """Return wall and CPU seconds, each of the best round."""
    clock, cpu = [], []
    for _ in range(_ROUNDS):
        since, used = time.perf_counter(), time.process_time()
        work()
        clock.append(time.perf_counter() - since)
        cpu.append(time.process_time() - used)
    return min(clock), min(cpu)


def measure(folder: Path, count: int, gigabytes: float) -> list[Row]:
    """Measure each method."""
    paths = make_files(folder, count, int(gigabytes * 1e9 / count))
    total = sum(path.stat().st_size for path in paths)
    published = {path.name: found for path, found in md5s(paths).items()}
    memory = folder / "checksums.json"
    assert not differences(folder, published, memory)
    assert [small_blocks(path) for path in paths] == [published[path.name] for path in paths]
    ways: dict[str, Callable[[], object]] = {
        "blocks of 4 KB, one file after the other (the published benchmark's way)": lambda: [
            small_blocks(path) for path in paths
        ],
        "blocks of 1 MiB, one file after the other": lambda: [md5(path) for path in paths],
        "blocks of 1 MiB, several files at once (ours)": lambda: md5s(paths),
        "the next look: size, time and inode (ours)": lambda: differences(folder, published, memory),
    }
    return [(name, *seconds, total / seconds[0] / 1e9) for name, work in ways.items() for seconds in [best(work)]]


def as_markdown(rows: list[Row], count: int, gigabytes: float) -> str:
    """Return the table, with a description of the machine and data."""
    machine = f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}"
    lines = [
        "# How fast files are checked",
        "",
        f"{count} files of {gigabytes / count:.2g} GB each, in the page cache, on {machine}; best of {_ROUNDS}.",
        f"Other work was going on there (a load of {os.getloadavg()[2]:.1f}): CPU seconds are what compares.",
        "Made by `python benchmarks/checksums.py --markdown docs/benchmarks.md`.",
        "",
        "| way | seconds | CPU seconds | GB/s |",
        "|---|---:|---:|---:|",
    ]
    for name, seconds, cpu, speed in rows:
        shown = f"{speed:.2f}" if speed < 1000 else "only stats"
        lines.append(f"| {name} | {seconds:.3g} | {cpu:.3g} | {shown} |")
    lines += [
        "",
        "MD5 itself bounds one core; several files at once use several cores, because hashing lets other threads run.",
        "Checksums are remembered beside the data, by size, modification time and inode: each file is read once.",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure and print, or write, the table."""
    parser = argparse.ArgumentParser(description="How fast files are checked.")
    parser.add_argument("--gigabytes", type=float, default=4.0)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--dir", type=Path, help="Where the files are made for the while.")
    parser.add_argument("--markdown", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.dir) as folder:
        text = as_markdown(measure(Path(folder), asked.files, asked.gigabytes), asked.files, asked.gigabytes)
    print(text)
    if asked.markdown:
        asked.markdown.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
