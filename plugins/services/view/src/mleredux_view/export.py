"""The same pages as files that open offline: relative links, nothing is loaded."""

from __future__ import annotations

import shutil
from pathlib import Path

from mleredux.errors import MlereduxError
from mleredux_artifact_reports.shared import TEMPLATES as REPORT
from starlette.routing import Match, Route

from mleredux_view.downloads import SentFile
from mleredux_view.links import ExportLinks, Linked, file_name
from mleredux_view.site import STATIC, all_pages, answer
from mleredux_view.source import Source
from mleredux_view.visit import Declared, Visit


def export(source: Source, folder: Path) -> int:
    """Write every page that can be reached from the list of runs; return their number.

    Raises:
        MlereduxError: The folder is not empty, or can't be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise MlereduxError(f"{folder} is not empty.", hint="Name a new folder.")
    try:
        shutil.copytree(STATIC, folder / "static", ignore=shutil.ignore_patterns("htmx.*"))
        shutil.copy(REPORT / "report.css", folder / "static" / "report.css")
        return _write_pages(source, folder)
    except OSError as error:
        raise MlereduxError(f"Cannot write to {folder}: {error.strerror or error}.") from error


def _write_pages(source: Source, folder: Path) -> int:
    routes = [(Route(one.path, lambda: None), one) for one in all_pages()]
    links, count = ExportLinks(), 0
    links.of(((), ()))()
    for page in links.pages():
        if page[0][:1] == ("static",) or (found := _found(routes, page)) is None:
            continue
        one, parts = found
        query = {name: [value] for name, value in page[1]}
        response = answer(one, Visit(source, parts, query, links.of(page), static=True))
        path = folder / file_name(page)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            file.writelines(response.pieces if isinstance(response, SentFile) else [bytes(response.body)])
        count += 1
    return count


def _found(routes: list[tuple[Route, Declared]], page: Linked) -> tuple[Declared, dict[str, str]] | None:
    path = "/" + "/".join(page[0])
    for route, one in routes:
        if one.method == "GET":
            match, scope = route.matches({"type": "http", "path": path, "method": "GET"})
            if match == Match.FULL:
                return one, dict(scope["path_params"])
    return None  # a link of a plugin that leads nowhere
