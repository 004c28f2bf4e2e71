"""Pages and panels that plugins register with the hook `mleredux_register_pages`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import cache, partial
from typing import Any, NamedTuple

from jinja2 import PackageLoader, PrefixLoader
from markupsafe import Markup
from mleredux.errors import MlereduxError, one_line
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
        except Exception as error:  # a plugin's code may raise anything
            for plugin in catalogue.plugins:
                if plugin.name == name:
                    plugin.report(f"Plugin {name!r} can't register pages ({one_line(error)}).")
            continue
        registered += [Registered(item, name) for item in items]
    return registered


def templates() -> PrefixLoader:
    """Return a loader for the `templates` folders of their packages, with the package names as prefixes."""
    found = {}
    for package in {one.package for one in added()}:
        with suppress(ImportError, ValueError):  # its pages then show an error
            found[package] = PackageLoader(package)
    return PrefixLoader(found)


def plugin_pages(registered: list[Registered]) -> list[Declared]:
    """Return the registered pages and actions in the form of those declared here."""
    pages = [(one.item, one) for one in registered if isinstance(one.item, Page)]
    actions = [(one.item, one) for one in registered if isinstance(one.item, Action)]
    return [
        *(Declared(page.path, partial(_shown, one), "GET", one) for page, one in pages),
        *(Declared(action.path, partial(_done, one), "POST", one) for action, one in actions),
    ]


def menu() -> list[tuple[str, str, list[str]]]:
    """Return their menu entries: the value of `here` in their template, the title, and the parts of the URL."""
    return [(page.path, page.menu, page.path.strip("/").split("/")) for page, _ in _pages() if page.menu]


def selections() -> list[tuple[str, list[str]]]:
    """Return their buttons on the list of runs: the title, and the parts of the URL."""
    return [(page.selection, page.path.strip("/").split("/")) for page, _ in _pages() if page.selection]


def panels_of(visit: Visit, shown: Run | Task) -> list[Section]:
    """Return the panels of a run or a task; a failing panel shows its error."""
    place = "task" if isinstance(shown, Task) else "run"
    found = [one for one in (*added(), *visit.also) if isinstance(one.item, Panel) and one.item.place == place]
    panels = ((one.item.title, _panel(one, visit, shown, place)) for one in found if isinstance(one.item, Panel))
    return [Section(title, html) for title, html in panels if html is not None]


def _pages() -> Iterator[tuple[Page, Registered]]:
    for one in added():
        if isinstance(one.item, Page):
            yield one.item, one


def _shown(one: Registered, visit: Visit) -> Shown | Response:
    found = one.call(visit)
    if isinstance(found, Download):
        return sent(found.file, found.name)
    return Shown(f"{one.package}/{_template(one)}", found or {})


def _done(one: Registered, visit: Visit) -> Response:
    return RedirectResponse(str(one.call(visit)), 303)


def _template(one: Registered) -> str:
    return "" if isinstance(one.item, Action) else one.item.template


def _panel(one: Registered, visit: Visit, shown: Run | Task, place: str) -> Markup | None:
    from mleredux_view.site import environment

    try:
        values = one.call(visit, shown)
        if values is None:
            return None
        known = {"visit": visit, "link": visit.link, "static": visit.static, "csrf": visit.csrf, place: shown}
        try:
            template = environment().get_template(f"{one.package}/{_template(one)}")
            return Markup(template.render({**known, **values}))
        except Exception as error:  # a plugin's template may raise anything
            raise one.failed(error) from error
    except MlereduxError as error:
        return Markup('<p class="empty">{}</p>').format(error.message)
