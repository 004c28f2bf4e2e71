"""Web pages for runs, live and offline: `mleredux view` and `mleredux report`.

| modules | contents |
|---|---|
| `command`, `report_command` | `mleredux view`; `mleredux report` |
| `source`, `local` | the protocol of a source of runs; the runs of a local directory |
| `listener`, `site`, `guard` | the local server; the application; access checks and security headers |
| `visit`, `forms`, `links` | a request for a page; submitted forms; URLs of pages |
| `pages`, `plugins` | the pages; pages and panels of plugins |
| `trace`, `stepfile`, `tree` | the steps of a run; an index of its rollout; the agent's search tree |
| `logfile`, `diffs`, `previews` | logs by line; differences of code; previews of files |
| `texts`, `charts`, `downloads` | formatted values; data of charts; downloaded files |
| `export` | the same pages as offline files |
| `shared` | functions for other programs with the same pages, such as the server |

How to add a page:

- A `Source` (`source`) lists runs, opens one, and reports changes. `local` reads a runs directory; a server has its own
  source. Nothing else depends on where runs are stored.
- A page in `pages` is a function that takes a `Visit` (the source, the parts of the path, the query) and returns the
  name of a template and its values; `@page("/runs/{run_id}/log")` sets its URL. Once `pages/__init__.py` lists the
  module, the page is served live, exported, and covered by the tests of all pages.
- A page that changes something is declared with `@action` and receives only POST requests.
- Templates in `templates/` extend `layout.html.j2`, and all values are escaped. URLs are always written as `{{
  link("runs", run.id, "log", line=7) }}`, so that an export can write relative file names instead.
- `static/view.css` extends the report's style sheet, using its custom properties; `static/view.js` is the only script
  besides those in `static/vendor`. Charts are `<div class="chart" data-chart='{{ chart|tojson }}'>`.
"""

from __future__ import annotations

from mleredux.plugin import Ref, hookimpl

mleredux_contract = 2


@hookimpl
def mleredux_register_commands() -> list[Ref]:
    """Return the commands `mleredux view` and `mleredux report`."""
    return [
        Ref(
            "view",
            "mleredux_view.command:command",
            {"title": "Show runs in a browser, live or offline.", "section": "Common"},
        ),
        Ref(
            "report",
            "mleredux_view.report_command:command",
            {"title": "Write pages about runs that can be opened offline.", "section": "Results"},
        ),
    ]
