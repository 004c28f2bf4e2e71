"""For authors of web pages and panels, which `mleredux view` shows, live and in exports.

A plugin registers pages at their own addresses, panels on the page of each run or task, and actions of forms. Their
functions are imported on first use, and return the template's variables, or None for no panel.

`my_package/templates/words.html.j2` is a Jinja template in which every value is escaped, such as
`<a href="{{ link("runs", run.id, "log") }}">{{ count|thousands }} words</a>`. The template of a page extends
`layout.html.j2`, and fills its blocks `title` and `content`. Every template has `visit`, `link`, `static` and, in a
panel, `run`. Scripts and styles in a page are not executed (content security policy); the style classes are those
of `report.css` and `view.css`. Create URLs with `link`, so that an export can follow them::

    from mleredux.plugin import hookimpl
    from mleredux.plugin.artifact import Run
    from mleredux.plugin.page import Panel, Visit

    @hookimpl
    def mleredux_register_pages() -> list[Panel]:
        return [Panel(title="Words", template="words.html.j2", function="my_package.words:words")]

    def words(visit: Visit, run: Run) -> dict[str, int] | None:
        return {"count": len(run.agent_log.read_bytes().split())} if run.agent_log.is_file() else None
"""

from __future__ import annotations

from mleredux._core.pages import Action as Action
from mleredux._core.pages import Download as Download
from mleredux._core.pages import Page as Page
from mleredux._core.pages import Panel as Panel
from mleredux._core.pages import StoredExperiment as StoredExperiment
from mleredux._core.pages import Visit as Visit
