"""Micro tasks: CPU time per seed, calibrated difficulty, and the share of sound certificates by level.

`python benchmarks/micro_tasks.py [--seeds 40] [--first 0]`

With `--technique NAME` (or `all`), the CPU time of planted tasks `NAME@synthetic-micro-…public-SEED` instead: the mean
and the maximum over the seeds of each technique, as the best of two runs.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import statistics
import tempfile
import time

from mleredux.errors import NotApplicable
from mleredux.plugin.command import DataStore, current
from mleredux.plugin.host import prepare
from mleredux_audit_floor.certificate import certify

LEVELS = ("", "easy-", "hard-")


def main() -> None:
    """Measure, and print one line per level."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--technique", help="a technique, or all", action="append")
    options = parser.parse_args()
    if options.technique:
        known = sorted(
            name for name, each in current().entries("techniques").items() if each.plugin.name == "techniques"
        )
        for technique in known if options.technique == ["all"] else options.technique:
            planted(technique, range(options.first, options.first + options.seeds))
        return
    for level in ("easy-", "", "hard-"):
        names = [f"synthetic-micro-{level}public-{options.first + number}" for number in range(options.seeds)]
        with tempfile.TemporaryDirectory() as folder:
            store = DataStore(folder)
            prepare(current().task("synthetic-micro-public-0"), current(), store)  # imports what is needed
            began = time.process_time()
            for name in names:
                prepare(current().task(name), current(), store)
            seconds = (time.process_time() - began) / len(names)
            certified = [certify(current().task(name), current(), store) for name in names]
        ps = [one["fields"]["difficulty"]["p"] for one in certified]
        failed = [field for one in certified for field, content in one["fields"].items() if content["ok"] is False]
        counts = {field: failed.count(field) for field in sorted(set(failed))}
        sound = [one["task"].rpartition("-")[2] for one in certified if one["sound"]]
        print(
            f"{level or 'medium'}: {seconds:.3f} CPU-s per seed, p {statistics.fmean(ps):.3f} (SD"
            f" {statistics.stdev(ps):.3f}), sound {len(sound)} of {len(certified)}, failed fields {counts};"
            f" sound: {sound}",
            flush=True,
        )


def planted(technique: str, seeds: range) -> None:
    """Print the CPU seconds of planted tasks of a technique; seeds that it does not apply to are left out."""
    seconds: dict[str, float] = {}
    for _ in range(2):
        with tempfile.TemporaryDirectory() as folder:
            store = DataStore(folder)
            with contextlib.suppress(NotApplicable):  # imports what is needed
                prepare(current().task(f"{technique}@synthetic-micro-public-999"), current(), store)
            for seed in seeds:
                name = f"{technique}@synthetic-micro-{LEVELS[seed % 3]}public-{seed}"
                with contextlib.suppress(NotApplicable):
                    task, began = current().task(name), time.process_time()
                    prepare(task, current(), store)
                    seconds[name] = min(time.process_time() - began, seconds.get(name, math.inf))
    if not seconds:
        print(f"{technique}: does not apply", flush=True)
        return
    slowest = max(seconds, key=lambda name: seconds[name])
    mean = statistics.fmean(seconds.values())
    print(
        f"{technique}: {mean:.3f} CPU-s per seed, {seconds[slowest]:.3f} for {slowest}, {len(seconds)} seeds",
        flush=True,
    )


if __name__ == "__main__":
    main()
