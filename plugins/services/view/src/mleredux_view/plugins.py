"""Pages and panels that plugins register with the hook `mleredux_register_pages`."""

from __future__ import annotations

import mimetypes
from contextlib import suppress
from functools import cache, partial
from typing import Any, NamedTuple

from jinja2 import PackageLoader, PrefixLoader
from markupsafe import Markup
from mleredux.errors import MlereduxError, is_interrupt, one_line
from mleredux.plugin.artifact import Run
from mleredux.plugin.command import Catalogue, current
from mleredux.plugin.page import Action, Download, Page, Panel
from mleredux.plugin.task import Task
from starlette.responses import RedirectResponse, Response

from mleredux_view.downloads import sent
from mleredux_view.visit import Declared, Registered, Shown, Visit


class Section(NamedTuple):
    """A panel of a run or task."""

    title: str
    html: Markup


@cache
def added() -> list[Registered]:
    """Return everything that plugins register, as of the first call."""
    return registered_pages(current())


def registered_pages(catalogue: Catalogue) -> list[Registered]:
    """Return the pages, panels and actions of all plugins; invalid ones are skipped and recorded as problems."""
    registered = []
    for implementation in catalogue.hook("mleredux_register_pages").get_hookimpls():
        name = implementation.plugin_name
        try:
            items: list[Any] = [*implementation.function()]  # type: ignore[misc]  # pluggy: object
            if wrong := [item for item in items if not isinstance(item, Page | Panel | Action)]:
                raise TypeError(f"{type(wrong[0]).__name__} is not a Page, Panel or Action")
        except BaseException as error:  # a plugin's code may raise anything
            if is_interrupt(error):
                raise
            for plugin in catalogue.plugins:
                if plugin.name == name:
                    plugin.report(f"Plugin {name!r} can't register pages ({one_line(error)}).")
            continue
        registered += [Registered(item, name) for item in items]
    return registered


def templates() -> PrefixLoader:
    """Return a loader for the `templates` folders of their packages, with the package names as prefixes."""
    loaders = {}
    for package in {registered.package for registered in added()}:
        with suppress(ImportError, ValueError):  # its pages then show an error
            loaders[package] = PackageLoader(package)
    return PrefixLoader(loaders)


def plugin_pages(registered: list[Registered]) -> list[Declared]:
    """Return the registered pages and actions in the form of those declared here."""
    pages = [(entry.item, entry) for entry in registered if isinstance(entry.item, Page)]
    actions = [(entry.item, entry) for entry in registered if isinstance(entry.item, Action)]
    return [
        *(Declared(page.path, partial(_shown, entry), "GET", entry) for page, entry in pages),
        *(Declared(action.path, partial(_done, entry), "POST", entry) for action, entry in actions),
    ]


def menu() -> list[tuple[str, str, list[str]]]:
    """Return their menu entries: the value of `here` in their template, the title, and the parts of the URL."""
    return [(page.path, page.menu, page.path.strip("/").split("/")) for page in _pages() if page.menu]


def selections() -> list[tuple[str, list[str]]]:
    """Return their buttons on the list of runs: the title, and the parts of the URL."""
    return [(page.selection, page.path.strip("/").split("/")) for page in _pages() if page.selection]


def panels_of(visit: Visit, shown: Run | Task) -> list[Section]:
    """Return the panels of a run or a task; a failing panel shows its error."""
    place = "task" if isinstance(shown, Task) else "run"
    here = [entry for entry in (*added(), *visit.also) if isinstance(entry.item, Panel) and entry.item.place == place]
    panels = ((entry.item.title, _panel(entry, visit, shown, place)) for entry in here if isinstance(entry.item, Panel))
    return [Section(title, html) for title, html in panels if html is not None]


def _pages() -> list[Page]:
    return [registered.item for registered in added() if isinstance(registered.item, Page)]


def _shown(registered: Registered, visit: Visit) -> Shown | Response:
    result = registered.call(visit)
    if isinstance(result, Download):
        kind = mimetypes.guess_type(result.name)[0] or ""
        return sent(result.file, result.name, kind if kind.startswith("image/") else None)
    return Shown(f"{registered.package}/{_template(registered)}", result or {})


def _done(registered: Registered, visit: Visit) -> Response:
    return RedirectResponse(str(registered.call(visit)), 303)


def _template(registered: Registered) -> str:
    return "" if isinstance(registered.item, Action) else registered.item.template


def _panel(registered: Registered, visit: Visit, shown: Run | Task, place: str) -> Markup | None:
    from mleredux_view.site import environment

    try:
        values = registered.call(visit, shown)
        if values is None:
            return None
        known = {"visit": visit, "link": visit.link, "static": visit.static, "csrf": visit.csrf, place: shown}
        with registered.isolated():
            template = environment().get_template(f"{registered.package}/{_template(registered)}")
            return Markup(template.render({**known, **values}))
    except MlereduxError as error:
        return Markup('<p class="empty">{}</p>').format(error.message)
