"""What other programs use that show the same pages, such as the server behind its accounts.

`make_site` makes the application from a function that tells what a visitor may see: a `Source`. The program itself
checks who asks: it sets `session_secret` in the scope of each request, refuses requests of other sites (`from_here`),
and sends `HEADERS`.
"""

from __future__ import annotations

from mleredux_view.guard import HEADERS, from_here
from mleredux_view.local import version_of
from mleredux_view.site import make_site, sign_in_page
from mleredux_view.source import Launch, RunQuery, RunTable, Source
from mleredux_view.visit import Registered, Visit, say

__all__ = [
    "HEADERS",
    "Launch",
    "Registered",
    "RunQuery",
    "RunTable",
    "Source",
    "Visit",
    "from_here",
    "make_site",
    "say",
    "sign_in_page",
    "version_of",
]
