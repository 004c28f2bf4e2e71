"""A form that requests runs, and actions that label runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import click
from mleredux.errors import MlereduxError
from mleredux.models.formats import plain
from mleredux.plugin.command import Duration, current, read_options
from starlette.responses import Response

from mleredux_view.pages.runs import finish, selected
from mleredux_view.source import Launch
from mleredux_view.visit import Shown, Visit, action, missing, page

_MOST_SEEDS = 100
_LABEL = re.compile(r"([A-Za-z0-9][A-Za-z0-9._/-]{0,62})=([^\x00-\x1f]{0,128})")


@page("/new")
def new(visit: Visit) -> Shown:
    """Show the form."""
    if visit.static:
        raise missing("form in an export")
    known = {
        kind: {name: _label(entry.ref.summary) for name, entry in current().entries(kind).items()}
        for kind in ("tasks", "agents", "sandboxes")
    }
    near = [
        (name, other)
        for name in ("task", "agent")
        if (typed := (visit.form.get(name) or [""])[-1].strip()) and typed not in known[f"{name}s"]
        for other in get_close_matches(typed, known[f"{name}s"], 2)
    ]
    return Shown("new.html.j2", {**known, "near": near})


def _label(summary: Mapping[str, Any]) -> str:
    """Return the title of a task or an agent, and its requirements."""
    size, needs = summary.get("size_gb"), summary.get("needs") or {}
    required = (
        f"{plain(size)} GB of data" if size else "",
        "needs a language model" if summary.get("network") == "gateway" else "",
        "needs an isolated sandbox" if needs.get("isolated") else "",
    )
    return "; ".join(filter(None, (summary.get("title"), *required)))


@action("/actions/launch")
def launch(visit: Visit) -> Response:
    """Request the runs specified in the form; show the run if it is the only one."""
    typed = {name: values[-1].strip() for name, values in visit.form.items()}
    runs = list(visit.source.launch(_launch(typed)))
    to = visit.link("runs", runs[0]) if len(runs) == 1 else visit.link()
    return finish(visit, (f"Requested {run}." for run in runs), to)


@action("/actions/label")
def label(visit: Visit) -> Response:
    """Label the selected runs."""
    typed = _LABEL.fullmatch((visit.form.get("label") or [""])[-1].strip())
    if typed is None:
        raise MlereduxError("A label must have the form NAME=VALUE.", hint="NAME= removes it.")
    return finish(visit, visit.source.label(selected(visit), typed[1], typed[2].strip()))


def _launch(fields: Mapping[str, str]) -> Launch:
    try:
        seeds = tuple(dict.fromkeys(int(word) for word in fields.get("seeds", "0").replace(",", " ").split())) or (0,)
        limit: Any = Duration().convert(fields["time_limit"], None, None) if fields.get("time_limit") else None
        options = read_options(tuple(line.strip() for line in fields.get("options", "").splitlines() if line.strip()))
    except (ValueError, click.ClickException) as error:
        message = error.message if isinstance(error, click.ClickException) else "Seeds must be whole numbers."
        raise MlereduxError(message, hint="Change the form.") from error
    if len(seeds) > _MOST_SEEDS:
        raise MlereduxError(f"A form can request at most {_MOST_SEEDS}.", hint="`mleredux experiment` can run more.")
    settings = {"sandbox": fields.get("sandbox") or None, "time_limit": limit, "options": options}
    return Launch(task=fields.get("task", ""), agent=fields.get("agent", ""), seeds=seeds, **settings)
