"""The documentation site: `uv run sphinx-build -W docs build/docs`."""

from __future__ import annotations

import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from importlib.metadata import version as version_of
from pathlib import Path

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent))
import rooms
import surface

surface.load()

ROOT = Path(__file__).parents[1]
REPOSITORY = "https://github.com/mleredux/mleredux"
PACKAGES = "reference/packages"
"""Folder of the pages created from the distributions' READMEs in each build."""
PROJECT_PAGES = ("CHANGELOG.md", "CONTRIBUTING.md")

RELEASES = "<!-- towncrier release notes start -->\n"

project = "mleredux"
author = "The mleredux developers"
copyright = author
version = release = version_of("mleredux")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["reference/schemas", "reference/examples"]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

napoleon_use_ivar = True
default_role = "code"
suppress_warnings = ["ref.python"]  # the client and core have errors with the same names
autodoc_member_order = "groupwise"
autodoc_typehints = "signature"
python_maximum_signature_line_length = 100

html_theme = "furo"
html_title = f"mleredux {version}"
html_static_path = ["_static"]
html_extra_path = ["llms.txt"]
html_copy_source = False
html_show_sphinx = False

_LINK = re.compile(r"\]\(([^)#\s:]+)(#[^)]*)?\)")


def _distributions() -> dict[str, str]:
    """Return the distributions of the workspace by folder."""
    return {
        str(path.parent.relative_to(ROOT)): tomllib.loads(path.read_text(encoding="utf-8"))["project"]["name"]
        for pattern in ("core", "kits/*", "plugins/*", "plugins/*/*")
        for path in ROOT.glob(f"{pattern}/pyproject.toml")
    }


DISTRIBUTIONS = _distributions()


def _led_to(text: str, folder: str, page: str) -> str:
    """Return the text with links relative to a folder replaced by links to pages of the site or the repository."""

    def link(match: re.Match[str]) -> str:
        path, anchor = posixpath.normpath(posixpath.join(folder, match[1])), match[2] or ""
        at, name = posixpath.split(path)
        if path in PROJECT_PAGES:
            target = posixpath.relpath(path.lower(), posixpath.dirname(page) or ".")
        elif path.startswith("docs/"):
            target = posixpath.relpath(path.removeprefix("docs/"), posixpath.dirname(page) or ".")
        elif name == "README.md" and at in DISTRIBUTIONS:
            target = posixpath.relpath(f"{PACKAGES}/{DISTRIBUTIONS[at]}.md", posixpath.dirname(page) or ".")
        else:
            target = f"{REPOSITORY}/blob/main/{path}"
        return f"]({target}{anchor})"

    return _LINK.sub(link, text)


def _unreleased() -> str:
    """Return the changes since the last release, as a section of the changelog; empty if there are none."""
    command = [sys.executable, "-m", "towncrier", "build", "--draft", "--version", "Unreleased", "--date", ""]
    draft = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    section = draft[draft.index("## Unreleased") :]
    return section.replace("## Unreleased ()", "\n## Unreleased") if "- " in section else ""


def _write_pages(app: Sphinx) -> None:
    """Write a page for each distribution, their list, the project's own pages, and the image of the rooms."""
    for name in PROJECT_PAGES:
        text = (ROOT / name).read_text(encoding="utf-8").replace(RELEASES, RELEASES + _unreleased(), 1)
        text = _led_to(text, "", name.lower())
        (Path(app.srcdir) / name.lower()).write_text(text, encoding="utf-8")
    folder = Path(app.srcdir) / PACKAGES
    folder.mkdir(exist_ok=True)
    for path, name in DISTRIBUTIONS.items():
        text = (ROOT / path / "README.md").read_text(encoding="utf-8")
        (folder / f"{name}.md").write_text(_led_to(text, path, f"{PACKAGES}/{name}"), encoding="utf-8")
    (Path(app.srcdir) / "_static" / "rooms.svg").write_text(rooms.draw(), encoding="utf-8")
    names = "\n".join(sorted(DISTRIBUTIONS.values()))
    (folder / "index.md").write_text(f"# Packages\n\n```{{toctree}}\n:maxdepth: 1\n\n{names}\n```\n", encoding="utf-8")


def _lead_out(app: Sphinx, page: str, source: list[str]) -> None:
    """Replace links that leave the docs by links to pages of the site or files in the repository."""
    if not page.startswith((PACKAGES, "changelog", "contributing")):
        source[0] = _led_to(source[0], posixpath.dirname(f"docs/{page}"), page)


def _read_fences(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Convert fenced blocks of docstrings to reStructuredText blocks."""
    inside, converted = False, list[str]()
    for line in lines:
        if line.strip().startswith("```"):
            inside = not inside
            converted += ["", f".. code-block:: {line.strip()[3:] or 'text'}", ""] if inside else [""]
        else:
            converted.append(f"    {line}" if inside else line)
    lines[:] = converted


def _export_experiment(app: Sphinx, error: Exception | None) -> None:
    """Run a small experiment and add its web pages to the site, if `sphinx-build -t experiment` was called."""
    if error is not None or not app.tags.has("experiment"):
        return
    with tempfile.TemporaryDirectory(prefix="mleredux-docs-") as folder:
        runs, data = ["--runs-dir", f"{folder}/runs"], ["--data-dir", f"{folder}/data"]
        mleredux = [sys.executable, "-m", "mleredux"]
        plan = str(ROOT / "docs/how-to/small.toml")
        subprocess.run(
            [*mleredux, "experiment", "run", plan, "--jobs", "2", *runs, *data], check=True, stdout=subprocess.DEVNULL
        )
        target = Path(app.outdir) / "example"
        shutil.rmtree(target, ignore_errors=True)
        subprocess.run(
            [*mleredux, "view", "--output", str(target), *runs, *data], check=True, stdout=subprocess.DEVNULL
        )


def setup(app: Sphinx) -> None:
    """Set up the Sphinx extension."""
    app.connect("build-finished", _export_experiment)
    app.connect("autodoc-process-docstring", _read_fences)
    app.connect("autodoc-process-docstring", surface.class_text, priority=400)  # napoleon has 500
    app.connect("autodoc-process-docstring", surface.attribute_text, priority=600)
    app.connect("autodoc-process-signature", surface.short_signature)
    app.connect("builder-inited", _write_pages)
    app.connect("source-read", _lead_out)
