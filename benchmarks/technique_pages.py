"""Make all pages of technique results again, in at most 30 minutes on two cores: items, results, tables of known truth.

`python benchmarks/technique_pages.py [--minutes 30] [--kaggle ../shared/data/kaggle] [--folder docs/reference]`

Two processes run at a time. Results are kept in a folder per version of the techniques, so that an interrupted or short
benchmark continues; pages state how many of their tasks ran.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).parent
RESERVE = 2.0
"""Minutes that the last task of a process may take after its time."""


def version() -> str:
    """Return a hash of the techniques and of the agent `analyst`."""
    roots = [HERE.parent / "plugins" / place / "src" for place in ("techniques", "agents/analyst")]
    files = sorted(path for root in roots for path in root.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]


def main() -> int:
    """Run the three benchmarks; return 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0, help="time for all pages")
    parser.add_argument("--folder", type=Path, default=Path("docs/reference"), help="write the pages here")
    parser.add_argument(
        "--data-dir", type=Path, default=Path(tempfile.gettempdir()) / f"mleredux-techniques-{version()}"
    )
    parser.add_argument("--kaggle", type=Path, help="folder of <id>/<id>.zip; without it, only starter competitions")
    options = parser.parse_args()
    until = time.monotonic() + 60 * options.minutes
    kept = ["--data-dir", str(options.data_dir)]
    kaggle = ["--kaggle", str(options.kaggle)] if options.kaggle else []
    lanes = (
        [("techniques.py", "techniques-results.md", ["--seeds", "1", *kept, *kaggle])],
        [
            ("technique_tables.py", "technique-tables.md", []),
            ("technique_items.py", "technique-items.md", ["--seeds", "1", "2", "--base", "wine", "diabetes", *kept]),
        ],
    )
    codes: list[int] = []

    def run(lane: list[tuple[str, str, list[str]]]) -> None:
        for place, (script, page, arguments) in enumerate(lane):
            minutes_left = (until - time.monotonic()) / 60 / (len(lane) - place) - RESERVE
            command = [sys.executable, str(HERE / script), "--markdown", str(options.folder / page), *arguments]
            command += ["--minutes", f"{max(minutes_left, 0.0):.1f}"]
            environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
            codes.append(subprocess.run(command, env=environment).returncode)

    threads = [threading.Thread(target=run, args=(lane,)) for lane in lanes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return int(any(codes))


if __name__ == "__main__":
    sys.exit(main())
