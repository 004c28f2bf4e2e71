"""The commands of the documentation work as they are written, each page in an empty folder."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from mleredux_support.pages import blocks, run_page, unchecked_commands
from mleredux_testing.pytest_plugin import validator

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
# The site's build makes these of files elsewhere; git ignores them.
_BUILT = {DOCS / "changelog.md", DOCS / "contributing.md", *(DOCS / "reference" / "packages").glob("*.md")}
PAGES = sorted({*DOCS.rglob("*.md")} - _BUILT)
_ENGINE = re.compile(r"docker|podman|repo:|harbor:|agent check")


def _with_commands() -> list[object]:
    """Pages that have commands, marked by what these need."""
    found = []
    for page in PAGES:
        commands = "".join(block.content for block in blocks(page) if block.runs)
        if commands:
            marks = [pytest.mark.slow, *([pytest.mark.docker] if _ENGINE.search(commands) else [])]
            found.append(pytest.param(page, id=str(page.relative_to(ROOT)), marks=marks))
    return found


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache of whoever types the commands of all pages."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Prepared data that pages share."""
    return tmp_path_factory.mktemp("data")


@pytest.mark.parametrize("page", _with_commands())
def test_the_commands_of_a_page_work(page: Path, tmp_path: Path, cache: Path, data: Path) -> None:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MLEREDUX_", "PYTHON", "VIRTUAL")) or name == "MLEREDUX_BASE_IMAGE"
    }
    fetched = {"UV_CACHE_DIR": found} if (found := _uv_cache()) else {}
    ours = {"MLEREDUX": str(ROOT), "MLEREDUX_DATA_ROOT": str(data), "XDG_CACHE_HOME": str(cache)}
    apart = {block.environment for block in blocks(page)} - {None}
    ours |= {f"BIN_{name}".upper(): str(validator(str(name)) / "bin") for name in apart}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
    run_page(page, tmp_path, {**kept, **ours, **fetched, "PATH": path, "COLUMNS": "120"})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_stands_where_it_is_run(page: Path) -> None:
    assert unchecked_commands(page) == [], "put them into a fence `sh`, or `sh no-run: REASON`"


READERS = {
    "build an agent": "an agent builder",
    "train models or policies": "a laboratory",
    "write a metric or a technique": "a plugin author",
    "write another plugin": "a plugin author",
    "teach": "a teacher",
    "host runs for a team": "an operator",
}
"""Rows of the front page, with the reader each is for."""


@pytest.mark.parametrize("row", READERS)
def test_the_first_commands_of_each_reader_are_run(row: str) -> None:
    """The front page leads each reader to how-to pages, whose first commands these tests run, or another test does."""
    [links] = re.findall(rf"^\| {row} \| (.*) \|$", (DOCS / "index.md").read_text(), re.MULTILINE)
    pages = [DOCS / name for name in re.findall(r"\]\((how-to/[^)#]+)\)", links)]
    assert pages
    for page in pages:
        first = next((block for block in blocks(page) if block.language == "sh"), None)
        tests = re.findall(r"\btests/\w+\.py\b", first.info) if first and page in PAGES else []
        if row == "host runs for a team" and page.name == "upgrade.md":
            continue  # it changes an installation
        assert first is not None and (first.runs or (tests and all((ROOT / test).is_file() for test in tests))), page


def _uv_cache() -> str | None:
    """Where uv keeps what it has fetched already, so that it is not fetched again."""
    usual = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "uv"
    return os.environ.get("UV_CACHE_DIR") or (str(usual) if usual.is_dir() else None)
