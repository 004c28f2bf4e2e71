#!/usr/bin/env python3
"""Print what the changes since a revision can reach: `affected.py REVISION`.

Each line is a word and a path for pytest. `whole`: all tests of a changed distribution, and changed tests. `fast`: the
tests that are not slow, of core, of the project, and of distributions that depend on a changed one by their
requirements or import it, in their tests too. A change of core, or of what all tests share, reaches everything. The
line `docs .` stands for the site, which is built if something below `docs` or a README has changed.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
SHARED = re.compile(r"core/src/|kits/[^/]+/src/|tests/_support/|pyproject\.toml$|conftest\.py$|\.ci/")
"""Files, by the beginning of their paths, that all tests depend on."""
EVERYTHING = ["core/tests", "kits", "plugins", "tests"]
_IMPORT = re.compile(r"^\s*(?:from|import) (mleredux_\w+)", re.MULTILINE)


def changed_files(revision: str) -> list[str]:
    """Return the files that differ from a revision or are new, relative to the root."""
    commands = ["git diff --name-only --no-renames -z " + revision, "git ls-files --others --exclude-standard -z"]
    listed = "".join(subprocess.check_output(command.split(" "), cwd=ROOT, text=True) for command in commands)
    return sorted(set(filter(None, listed.split("\0"))))


def distributions(root: Path) -> dict[str, set[str]]:
    """Return the folder of each plugin's distribution, with the packages that it needs or imports.

    Core's extras, which name plugins, are no needs.
    """
    needs = {}
    for file in sorted(root.glob("plugins/**/pyproject.toml")):
        project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        extras: dict[str, list[str]] = project.get("optional-dependencies", {})
        required = [*project.get("dependencies", []), *(need for extra in extras.values() for need in extra)]
        names = {match[0].replace("-", "_") for need in required if (match := re.match(r"mleredux-[\w-]+", need))}
        for source in [*file.parent.glob("src/**/*.py"), *file.parent.glob("tests/**/*.py")]:
            names.update(_IMPORT.findall(source.read_text(encoding="utf-8")))
        needs[file.parent.relative_to(root).as_posix()] = names - {project["name"].replace("-", "_")}
    return needs


def reached(files: Iterable[str], root: Path = ROOT) -> list[tuple[str, str]]:
    """Return words and paths, as described above, for changed files."""
    files = list(files)
    site = [("docs", ".")] if any(file.startswith("docs/") or file.endswith("README.md") for file in files) else []
    if any(SHARED.match(file) for file in files):
        return [*(("whole", path) for path in EVERYTHING), *site]
    needs = distributions(root)
    packages = {folder: {path.name for path in (root / folder / "src").glob("mleredux_*")} for folder in needs}
    changed = {folder for folder in needs if any(file.startswith(f"{folder}/") for file in files)}
    reach = set(changed)
    while more := {
        folder for folder in needs.keys() - reach if any(needs[folder] & packages[other] for other in reach)
    }:
        reach |= more
    tests = {file for file in files if re.match(r"(core/)?tests/(.*/)?test_\w+\.py$", file) and (root / file).exists()}
    if any(folder.startswith("plugins/sandboxes/") for folder in reach):
        tests.add("tests/containers")
    whole = sorted(folder for folder in changed if (root / folder / "tests").exists())
    fast = sorted(folder for folder in reach - changed if (root / folder / "tests").exists())
    return [
        *(("whole", path) for path in [*whole, *sorted(tests)]),
        *(("fast", path) for path in ["core/tests", "tests", *fast]),
        *site,
    ]


if __name__ == "__main__":
    for word, path in reached(changed_files(sys.argv[1])):
        print(word, path)
