"""Web pages over runs, live and offline: `mleredux view` and `mleredux report`.

How it is put together, and how a page is added:

- `source.py` is what pages read: a `Source` lists runs, opens one, and tells when something changed. `local.py` reads a
  runs directory; a server has one of its own. Nothing else knows where runs come from.
- `pages/` has a module for each page. A page is a function that takes a `Visit` (the source, the path's parts, the
  query) and returns the name of a template and its values; `@page("/runs/{run_id}/log")` gives it an address. List the
  module in `pages/__init__.py`, and that is all: it is served live, exported, and checked by the tests of every page.
- `plugins.py` adds the pages and panels of other plugins, and some own ones, by the hook `mleredux_register_pages`.
- `templates/` extends `layout.html.j2`; everything is escaped. Addresses are always written as
  `{{ link("runs", run.id, "log", line=7) }}`, so that an export can write relative file names instead.
- `static/view.css` continues the report's style sheet with its custom properties; `static/view.js` is the only own
  script. Charts are `<div class="chart" data-chart='{{ chart|tojson }}'>`; see `charts.py`.
- `guard.py` holds what keeps others out: the one-time address, the check of `Host` and `Origin`, and the content
  security policy. A page that changes something is declared with `@action` and gets POST requests only.
"""

from __future__ import annotations

from mleredux.plugin import Ref, hookimpl

mleredux_contract = 2


@hookimpl
def mleredux_register_commands() -> list[Ref]:
    """`mleredux view` and `mleredux report`."""
    return [
        Ref(
            "view",
            "mleredux_view.command:command",
            {"title": "Show runs in a browser, live or offline.", "section": "Results"},
        ),
        Ref(
            "report",
            "mleredux_view.report_command:command",
            {"title": "Write pages over runs that open offline.", "section": "Results"},
        ),
    ]
