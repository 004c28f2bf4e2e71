"""Parts of the report that other pages about runs use: the page's content, its templates and style sheet.

`TEMPLATES` contains `report.css`, the macros of `parts.html.j2`, and the sections `result.html.j2`, `timeline.html.j2`,
`limits.html.j2` and `environment.html.j2`, which show a `page` of `page_of`, and `tools.html.j2`, which shows the
`tools` of `tools_of`.
"""

from __future__ import annotations

from mleredux_artifact_reports.documents import markdown
from mleredux_artifact_reports.files import Excerpt, excerpt, files_below, terminal_text, text_of, visible
from mleredux_artifact_reports.page import TEMPLATES
from mleredux_artifact_reports.rollouts import trace_of
from mleredux_artifact_reports.steps import StepView, step_view
from mleredux_artifact_reports.timeline import Acted, cpus, tools_of, unit_of, unix_time
from mleredux_artifact_reports.view import Page, page_of

__all__ = [
    "TEMPLATES",
    "Acted",
    "Excerpt",
    "Page",
    "StepView",
    "cpus",
    "excerpt",
    "files_below",
    "markdown",
    "page_of",
    "step_view",
    "terminal_text",
    "text_of",
    "tools_of",
    "trace_of",
    "unit_of",
    "unix_time",
    "visible",
]
