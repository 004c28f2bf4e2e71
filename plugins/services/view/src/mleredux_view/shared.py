"""Functions for other programs that show the same pages, such as the server with its accounts.

`make_site` creates the application from a function that returns, as a `Source`, the data that a visitor may see. The
program itself controls access: it sets `session_secret` in the scope of each request, refuses cross-site requests
(`from_here`), and sends `HEADERS`.
"""

from __future__ import annotations

from mleredux_view.guard import HEADERS, from_here
from mleredux_view.local import version_of
from mleredux_view.site import make_site, sign_in_page
from mleredux_view.source import Launch, RunQuery, RunTable, Source
from mleredux_view.visit import Registered, Visit, add_message

__all__ = [
    "HEADERS",
    "Launch",
    "Registered",
    "RunQuery",
    "RunTable",
    "Source",
    "Visit",
    "add_message",
    "from_here",
    "make_site",
    "sign_in_page",
    "version_of",
]
