#!/usr/bin/env python3
"""Make a release by one command, in the workspace's environment: `uv run python .ci/release.py VERSION`.

It sets the version of every distribution and the bounds between them, writes the changelog from the fragments in
`changes/`, builds all wheels into `dist/`, checks them, commits and tags. `--check` builds and checks the wheels as
they are, and changes nothing: each wheel is installed alone (with what it depends on) into an environment of its own,
is imported, and the commands of its README are run there.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import tomllib
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from mleredux_support.pages import run_page

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
PROJECTS = [
    path
    for pattern in ("core", "kits/*", "plugins/*", "plugins/*/*")
    for path in sorted(ROOT.glob(f"{pattern}/pyproject.toml"))
]
# Third parties' packages move along.
FOLLOWERS = [
    *ROOT.glob("examples/*/pyproject.toml"),
    *ROOT.glob("kits/testing/src/mleredux_testing/templates/*/pyproject.toml.tmpl"),
    *ROOT.glob("docs/how-to/*.md"),
]
_VERSION = re.compile(r'^version = "[^"]*"$', re.MULTILINE)
_BOUND = re.compile(r"(mleredux[\w-]*(?:\[[\w,-]+\])?)>=[\d.]+,<[\d.]+")


def set_version(version: str) -> None:
    """Write the version into every distribution, and `>=X.Y,<X.(Y+1)` into each dependency between them."""
    major, minor = (int(part) for part in version.split(".")[:2])
    bound = rf"\1>={major}.{minor},<{major}.{minor + 1}"
    for path in PROJECTS:
        text = _VERSION.sub(f'version = "{version}"', path.read_text(encoding="utf-8"), count=1)
        path.write_text(_BOUND.sub(bound, text), encoding="utf-8")
    manifest = ROOT / "plugins/bridges/openenv/openenv.yaml"
    manifest.write_text(re.sub(r"(?m)^version: .*$", f"version: {version}", manifest.read_text(encoding="utf-8")))
    for path in FOLLOWERS:
        path.write_text(_BOUND.sub(bound, path.read_text(encoding="utf-8")), encoding="utf-8")


def build() -> None:
    """Build every wheel into an empty `dist/`."""
    shutil.rmtree(DIST, ignore_errors=True)
    _call("uv", "build", "--quiet", "--all-packages", "--wheel", "--out-dir", str(DIST))


def check(project: Path, shared: Path) -> str | None:
    """Return what is wrong with the wheel of a distribution, or None.

    Args:
        project: Its `pyproject.toml`.
        shared: A folder with one environment for each thread, made again for each wheel: always at the same place, so
            that bytecode of the packages that several wheels need is compiled once.
    """
    about = tomllib.loads(project.read_text(encoding="utf-8"))
    name = about["project"]["name"]
    packages = [Path(path).name for path in about["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]]
    with tempfile.TemporaryDirectory(prefix=f"{name}-") as scratch:
        folder, environment = Path(scratch) / "work", shared / f"environment-{threading.get_ident()}"
        folder.mkdir()
        variables = _clean_environment() | {
            "PATH": f"{environment / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PIP_FIND_LINKS": str(DIST),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PYTHONPYCACHEPREFIX": str(shared / "bytecode"),
            "XDG_CACHE_HOME": str(Path(scratch) / "cache"),
            "COLUMNS": "120",
        }
        python = environment / "bin" / "python"
        try:
            _call("uv", "venv", "--quiet", "--seed", "--clear", "--python", sys.executable, str(environment))
            install = ("uv", "pip", "install", "--quiet", "--python", str(python), "--find-links", str(DIST))
            _call(*install, *(option for wheel in _names() for option in ("--refresh-package", wheel)), name)
            _call(str(python), "-c", "; ".join(f"import {package}" for package in packages), cwd=folder, env=variables)
            run_page(project.parent / "README.md", folder, variables)
        except (AssertionError, subprocess.CalledProcessError) as error:
            printed = getattr(error, "stdout", None) or ""
            return f"{name}: {error}\n{printed[-2000:]}"
    return None


def _names() -> list[str]:
    """Return the names of all distributions, whose wheels must not come from uv's cache."""
    return [tomllib.loads(path.read_text(encoding="utf-8"))["project"]["name"] for path in PROJECTS]


def _clean_environment() -> dict[str, str]:
    """Return the variables of this process without mleredux's and Python's, but with the base image that tests use."""
    ours = ("MLEREDUX_", "PYTHON", "VIRTUAL")
    return {
        name: value for name, value in os.environ.items() if not name.startswith(ours) or name.endswith("BASE_IMAGE")
    }


def _call(*command: str, **options: object) -> None:
    subprocess.run(
        command, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **{"cwd": ROOT, **options}
    )  # type: ignore[call-overload]


def main() -> int:
    """Work the command line; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("version", nargs="?", help="such as 0.4.0")
    parser.add_argument("--check", action="store_true", help="build and check the wheels only")
    parser.add_argument("--only", metavar="TEXT", default="", help="check wheels whose name holds this")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    if not asked.check and not re.fullmatch(r"\d+\.\d+\.\d+", asked.version or ""):
        parser.error("name a version such as 0.4.0, or --check")
    if not asked.check:
        if subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, check=True).stdout:
            parser.error("the work tree has changes; commit them first")
        set_version(asked.version)
        _call("towncrier", "build", "--yes", "--version", asked.version)
    build()
    chosen = [
        project
        for project in PROJECTS
        if asked.only in project.read_text(encoding="utf-8").partition('name = "')[2].partition('"')[0]
    ]
    with tempfile.TemporaryDirectory(prefix="release-") as shared, ThreadPoolExecutor(asked.jobs) as pool:
        problems = [problem for problem in pool.map(partial(check, shared=Path(shared)), chosen) if problem]
    print(*problems, sep="\n\n", end="\n" if problems else "")
    print(
        f"{len(chosen) - len(problems)} of {len(chosen)} wheels install alone, and the commands of their READMEs work"
    )
    if problems:
        return 1
    if not asked.check:
        _call("git", "commit", "--all", "--quiet", "--message", f"Release {asked.version}")
        _call("git", "tag", "--annotate", f"v{asked.version}", "--message", f"mleredux {asked.version}")
        print(f"v{asked.version} is committed and tagged; publish the wheels in dist/ with `uv publish`")
    return 0


if __name__ == "__main__":
    sys.exit(main())
