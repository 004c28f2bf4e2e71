"""Grade the sheets of natural tables: `python benchmarks/natural_tables.py [TABLE...] [--technique NAME] [--known]`.

Prints one line per technique and table: the sheet's score, the best wrong score, and deviations from the expected
result. `--known` prints the entries to add to and remove from `plugins/techniques/tests/natural/known.py`.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "plugins" / "techniques" / "tests"
sys.path.insert(0, str(TESTS))


def main() -> None:
    """Print the results."""
    from mleredux._core.data import DataStore
    from mleredux._core.plugins import Catalogue
    from natural.answers import KAGGLE, STARTERS, TECHNIQUES
    from natural.judge import judge
    from natural.known import EXECUTED, KNOWN
    from natural.tables import TABLES

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", default=[*TABLES, *STARTERS, *KAGGLE])
    parser.add_argument("--executed", action="store_true", help="execute the advice of all sheets")
    parser.add_argument("--known", action="store_true", help="print what known.py lacks and has too many")
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "natural-tables")
    parser.add_argument("--technique", action="append", choices=TECHNIQUES, help="only this one; may be repeated")
    options = parser.parse_args()
    raw = Path(os.environ.get("MLEREDUX_SHARED", ROOT.parent / "shared")) / "data" / "kaggle"
    catalogue, store = Catalogue(load=[str(TESTS / "natural" / "plugin.py")]), DataStore(options.data)
    for table in options.tables:
        for technique in options.technique or TECHNIQUES:
            name = f"{technique}@{table}"
            outcome = judge(technique, table, catalogue, store, raw, options.executed or name in EXECUTED)
            if options.known:
                if bool(outcome.problems) != (name in KNOWN):
                    print(f'{"+" if outcome.problems else "-"} "{name}": "{"; ".join(outcome.problems)}",', flush=True)
                continue
            scores = [
                f"{score:.2f}" if score is not None else "–"
                for score in (outcome.sheet, max(outcome.wrong.values(), default=None))
            ]
            print(f"| `{name}` | {' | '.join(scores)} | {'; '.join(outcome.problems)} |", flush=True)


if __name__ == "__main__":
    main()
