"""Pages and panels that plugins add by the hook `mleredux_register_pages`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import cache, partial
from typing import NamedTuple

from jinja2 import PackageLoader, PrefixLoader
from markupsafe import Markup
from mleredux.errors import MlereduxError
from mleredux.plugin.artifact import Run
from mleredux.plugin.command import current
from mleredux.plugin.page import Page, Panel, Registered, registered_pages

from mleredux_view.visit import Declared, Shown, Visit


class Section(NamedTuple):
    """A panel of one run."""

    title: str
    html: Markup


@cache
def added() -> list[Registered]:
    """Everything that plugins add, as registered when it is asked for first."""
    return registered_pages(current())


def templates() -> PrefixLoader:
    """The folders `templates` of their packages, below the packages' names."""
    found = {}
    for package in {one.package for one in added()}:
        with suppress(ImportError, ValueError):  # its pages then say that they fail
            found[package] = PackageLoader(package)
    return PrefixLoader(found)


def plugin_pages() -> list[Declared]:
    """The pages as if they were declared here."""
    return [Declared(page.path, partial(_shown, one), "GET", one) for page, one in _pages()]


def menu() -> list[tuple[str, str, list[str]]]:
    """Their entries in the menu: the value of `here` in their template, the title, and the parts of the address."""
    return [(page.path, page.menu, page.path.strip("/").split("/")) for page, _ in _pages() if page.menu]


def selections() -> list[tuple[str, list[str]]]:
    """Their buttons on the list of runs: the title, and the parts of the address."""
    return [(page.selection, page.path.strip("/").split("/")) for page, _ in _pages() if page.selection]


def panels_of(visit: Visit, run: Run) -> list[Section]:
    """The panels of a run; one that fails says so instead."""
    panels = ((one.item.title, _panel(one, visit, run)) for one in added() if isinstance(one.item, Panel))
    return [Section(title, html) for title, html in panels if html is not None]


def _pages() -> Iterator[tuple[Page, Registered]]:
    for one in added():
        if isinstance(one.item, Page):
            yield one.item, one


def _shown(one: Registered, visit: Visit) -> Shown:
    return Shown(f"{one.package}/{one.item.template}", one.call(visit) or {})


def _panel(one: Registered, visit: Visit, run: Run) -> Markup | None:
    from mleredux_view.site import environment

    try:
        values = one.call(visit, run)
        if values is None:
            return None
        known = {"visit": visit, "link": visit.link, "static": visit.static, "run": run}
        try:
            template = environment().get_template(f"{one.package}/{one.item.template}")
            return Markup(template.render({**known, **values}))
        except Exception as error:  # a plugin's template may raise anything
            raise one.failed(error) from error
    except MlereduxError as error:
        return Markup('<p class="empty">{}</p>').format(error.message)
