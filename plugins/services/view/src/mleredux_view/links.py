"""URLs of pages: paths on a server, or file names in an export, relative to the page that contains the link."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Callable, Iterator
from urllib.parse import quote, urlencode

Linked = tuple[tuple[str, ...], tuple[tuple[str, str], ...]]
"""A page, as the parts of its path and its query."""


def served(root: str) -> Callable[..., str]:
    """Return the function `link` for a server mounted at a path."""

    def link(*parts: object, **query: object) -> str:
        path = "/".join(quote(str(part), safe="") for part in parts)
        parameters = urlencode([(name, value) for name, value in query.items() if value not in (None, "")], doseq=True)
        return f"{root}/{path}{'?' + parameters if parameters else ''}"

    return link


class ExportLinks:
    """Creates relative file names for pages that open from a folder, and remembers which pages were linked."""

    def __init__(self) -> None:
        self._named: dict[Linked, None] = {}
        self._left: list[Linked] = []

    def of(self, page: Linked) -> Callable[..., str]:
        """Return the function `link` for a page."""
        folder = posixpath.dirname(file_name(page))

        def link(*parts: object, **query: object) -> str:
            parameters = tuple((name, str(value)) for name, value in sorted(query.items()) if value not in (None, ""))
            named: Linked = (tuple(map(str, parts)), parameters)
            if named not in self._named:
                self._named[named] = None
                self._left.append(named)
            return quote(posixpath.relpath(file_name(named), folder or "."), safe="/")

        return link

    def pages(self) -> Iterator[Linked]:
        """Yield every linked page, including those linked during iteration."""
        while self._left:
            yield self._left.pop(0)


def file_name(page: Linked) -> str:
    """Return the file name of a page in an export; unsafe characters of its URL are replaced by a hash."""
    parts, query = page
    if parts[:1] == ("static",):
        return "/".join(parts)
    text = "-".join((*parts[2:], *(f"{name}-{value}" for name, value in query))) or "index"
    folder = "/".join(_safe(part) for part in parts[:2])
    return posixpath.join(folder, f"{_safe(text)}.{'txt' if parts[2:] == ('raw',) else 'html'}")


def _safe(text: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip(".-")[:80]
    return plain if plain == text else f"{plain}-{hashlib.sha256(text.encode()).hexdigest()[:8]}".lstrip("-")
