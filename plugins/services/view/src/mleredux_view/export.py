"""Export the same pages as files that open offline, with relative links and without loading anything."""

from __future__ import annotations

import shutil
from pathlib import Path

from mleredux.errors import MlereduxError, file_errors
from mleredux_artifact_reports.shared import TEMPLATES as REPORT

from mleredux_view.downloads import SentFile
from mleredux_view.links import ExportLinks, file_name
from mleredux_view.site import STATIC, all_pages, answer, find_page
from mleredux_view.source import Source
from mleredux_view.visit import Visit


def export(source: Source, folder: Path) -> int:
    """Write every page that is reachable from the list of runs; return the number of pages.

    Raises:
        MlereduxError: The folder is not empty, or cannot be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise MlereduxError(f"{folder} is not empty.", hint="Choose a new folder.")
    with file_errors(MlereduxError, f"Cannot write to {folder}"):
        shutil.copytree(STATIC, folder / "static", ignore=shutil.ignore_patterns("htmx.*"))
        shutil.copy(REPORT / "report.css", folder / "static" / "report.css")
        return _write_pages(source, folder)


def _write_pages(source: Source, folder: Path) -> int:
    pages, links, count = all_pages(), ExportLinks(), 0
    links.of(((), ()))()
    for page in links.pages():
        if page[0][:1] == ("static",) or (match := find_page(pages, "/" + "/".join(page[0]))) is None:
            continue  # a plugin's link may be broken
        declared, parts = match
        query = {name: [value] for name, value in page[1]}
        response = answer(declared, Visit(source, parts, query, links.of(page), static=True))
        path = folder / file_name(page)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            file.writelines(response.pieces if isinstance(response, SentFile) else [bytes(response.body)])
        count += 1
    return count
