"""Count the attacks that tests tried and those that failed, and write the table of `docs/security.md`.

    python docs/attacks.py [--check] [--area NAME]... [PYTEST OPTIONS...]

It runs the tests marked `attack` of the files in `AREAS`: each acts like a hostile agent, repository, submission or
client. Tests with honest input are not counted. `--area` runs only that area and keeps the other rows; `--check` does
not change the page. The exit code is 1 if an attack succeeded.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
AREAS = {
    "containment": "tests/containers/test_container_hostile.py tests/containers/test_container_hardening.py",
    "disk": "tests/containers/test_container_disk.py core/tests/test_core_disk.py",
    "other limits": "tests/containers/test_container_limits.py core/tests/test_core_limits.py",
    "submissions: files and races": "core/tests/test_core_intake.py core/tests/test_core_documents.py",
    "submissions: code": ("kits/programs/tests"),
    "validation": "core/tests/test_core_endpoint.py tests/containers/test_container_validation.py",
    "rollouts": "kits/rollout/tests/test_rollout_hostile.py",
    "budgets": (
        "plugins/services/gateway/tests/test_gateway_attacks.py plugins/services/gateway/tests/test_gateway_budgets.py"
    ),
    "screening of requests": "plugins/services/gateway/tests/test_gateway_screening.py",
    "repositories": (
        "plugins/agents/repo/tests/test_repo_attacks.py plugins/agents/repo/tests/test_repo_sources.py "
        "plugins/agents/repo/tests/test_repo_redirects.py"
    ),
    "redirects": "core/tests/test_core_redirects.py tests/test_redirects.py",
    "plugins": "tests/test_plugin_clashes.py",
    "grants": "plugins/agents/repo/tests/test_repo_grants.py plugins/services/server/tests/test_server_grants.py",
    "builds": (
        "tests/containers/test_container_build.py tests/containers/test_container_egress.py "
        "tests/containers/test_container_layers.py"
    ),
    "networks by host": "kits/containers/tests/test_containers_egress.py",
    "obfuscation": "tests/containers/test_container_obfuscation.py",
    "secrets": "core/tests/test_core_masking.py",
    "conduct": "plugins/audit/conduct/tests",
    "bundles": "plugins/audit/bundle/tests",
    "report page": "plugins/artifacts/reports/tests/test_reports_page.py",
    "server": (
        "plugins/services/server/tests/test_server_security_hostile.py "
        "plugins/services/server/tests/test_server_artifacts.py"
    ),
    "web pages": "plugins/services/view/tests/test_view_guard.py plugins/services/server/tests/test_server_web.py",
    "verification": (
        "plugins/artifacts/notes/tests/test_verify.py plugins/artifacts/notes/tests/test_verify_ids.py "
        "tests/test_verdicts.py"
    ),
    "terminals": "tests/test_terminal_escapes.py",
    "flaw classes": "tests/test_flaw_classes.py",
}
"""Files and folders of attack tests, by area."""
PAGE = Path(__file__).with_name("security.md")
_ROW = re.compile(r"^\| (.+) \| (\d+) \| (\d+) \|$", re.MULTILINE)
_TABLE = re.compile(r"(?<=<!-- attacks -->\n).*?(?=<!-- end -->)", re.DOTALL)


class Tally:
    """Counts attack tests by area."""

    def __init__(self) -> None:
        self.tried: Counter[str] = Counter()
        self.held: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test once: its call, or its setup if that failed or was skipped."""
        file = report.nodeid.partition("::")[0]
        area = next(name for name, files in AREAS.items() if any(file.startswith(each) for each in files.split()))
        if report.skipped:
            self.left_out[area] += 1
        elif report.when == "call" or report.failed:
            self.tried[area] += 1
            self.held[area] += report.passed

    def table(self, before: str = "") -> str:
        """Return the table in Markdown.

        Args:
            before: The table with the rows of areas that were not run.
        """
        rows = {area: (tried, held) for area, tried, held in _ROW.findall(before) if area in AREAS}
        rows |= {area: (str(self.tried[area]), str(self.held[area])) for area in self.tried}
        lines = ["| area | tried | held |", "|---|---|---|"]
        lines += [f"| {area} | {tried} | {held} |" for area, (tried, held) in sorted(rows.items())]
        return "\n".join(["", *lines, "", ""])


def main() -> int:
    """Run the attacks; return the exit code of pytest."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--area", action="append", choices=list(AREAS))
    arguments, options = parser.parse_known_args()
    tally = Tally()
    files = [str(ROOT / each) for area in arguments.area or AREAS for each in AREAS[area].split()]
    ended = pytest.main(
        ["-q", "-m", "attack", "-p", "no:cacheprovider", "--rootdir", str(ROOT), *options, *files], [tally]
    )
    page = PAGE.read_text(encoding="utf-8")
    previous = _TABLE.search(page)
    table = tally.table(previous[0] if previous and arguments.area else "")
    print(table)
    if tally.left_out:
        print("Not tried here:", ", ".join(f"{count} of {area}" for area, count in sorted(tally.left_out.items())))
    if not arguments.check and not tally.left_out:
        PAGE.write_text(_TABLE.sub(lambda _: table, page), encoding="utf-8")
    return int(ended)


if __name__ == "__main__":
    sys.exit(main())
