"""Count what attack tests tried and what held, and write the table of `docs/security.md`.

    python docs/attacks.py [--check] [PYTEST ARGUMENTS...]

It runs the tests marked `attack("area")`, each of which tries what a hostile agent, repository or submission would.
`--check` changes nothing: it says which areas of the page are out of date, and exits with 1 if an attack got through.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

import pytest

PAGE = Path(__file__).with_name("security.md")
_TABLE = re.compile(r"(?<=<!-- attacks -->\n).*?(?=<!-- end -->)", re.DOTALL)


class Tally:
    """Counts attack tests by area."""

    def __init__(self) -> None:
        self.areas: dict[str, str] = {}
        self.tried: Counter[str] = Counter()
        self.held: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Keep attacks only."""
        marks = {item.nodeid: item.get_closest_marker("attack") for item in items}
        self.areas = {name: str(mark.args[0]) for name, mark in marks.items() if mark is not None}
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in self.areas])
        items[:] = [item for item in items if item.nodeid in self.areas]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test once: by its call, or by a set-up that failed or was skipped."""
        area = self.areas[report.nodeid]
        if report.skipped:
            self.left_out[area] += 1
        elif report.when == "call" or report.failed:
            self.tried[area] += 1
            self.held[area] += report.passed

    def table(self) -> str:
        """The table in Markdown."""
        lines = ["| area | tried | held |", "|---|---|---|"]
        lines += [f"| {area} | {self.tried[area]} | {self.held[area]} |" for area in sorted(self.tried)]
        return "\n".join(["", *lines, "", ""])


def main() -> int:
    """Run the attacks; the exit code is that of pytest."""
    arguments = sys.argv[1:]
    check = "--check" in arguments
    tally = Tally()
    ended = pytest.main(["-q", "-p", "no:cacheprovider", *(each for each in arguments if each != "--check")], [tally])
    print(tally.table())
    if tally.left_out:
        print("Not tried here:", ", ".join(f"{count} of {area}" for area, count in sorted(tally.left_out.items())))
    if not check and not tally.left_out:
        PAGE.write_text(_TABLE.sub(lambda _: tally.table(), PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return int(ended)


if __name__ == "__main__":
    sys.exit(main())
