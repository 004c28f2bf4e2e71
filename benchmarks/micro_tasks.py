"""Micro tasks: CPU time per seed, calibrated difficulty, and the share of sound certificates by level.

`python benchmarks/micro_tasks.py [--seeds 40] [--first 0]`
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time

from mleredux.plugin.command import DataStore, current
from mleredux.plugin.host import prepare
from mleredux_audit_floor.certificate import certify


def main() -> None:
    """Measure, and print one line per level."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
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


if __name__ == "__main__":
    main()
