"""The HTTP service of mleredux: `mleredux serve`.

A request passes through these packages from top to bottom; the scheduler takes over the jobs that `runs` creates. The
`__init__` of each package describes its modules.

| packages and modules | contents |
|---|---|
| `cli`, `settings`, `operations` | the commands; the settings of `mleredux serve`; tools for administrators |
| `app`, `service` | the application, assembled from its parts; the state that they share |
| `protocol` | what all requests share: limits, logs, errors, repeated requests |
| `api`, `schemas` | the routes of `/v1`, and their documents |
| `web` | pages behind the accounts of this server |
| `accounts` | users, projects, tokens, permissions and secrets |
| `runs` | runs, experiments, builds and submissions: checked, admitted, created, changed, listed |
| `files`, `streams` | files of runs, sent and received; live streams |
| `scheduler`, `work` | queued jobs and workers; the work of each type of job |
| `database` | users, requests and the queue |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mleredux.plugin import Ref, hookimpl

if TYPE_CHECKING:
    from mleredux.plugin.agent import Agent

mleredux_contract = 2


@hookimpl
def mleredux_find_agent(reference: str) -> Agent | None:
    """Find an agent that a user uploaded to this server."""
    if not reference.startswith("upload:"):
        return None
    from mleredux_server.runs.uploaded import uploaded_agent

    return uploaded_agent(reference)


@hookimpl
def mleredux_register_commands() -> list[Ref]:
    """`serve` starts the service; `server` administers its database."""
    here, title = {"section": "Common", "place": "machine"}, "Start the HTTP service."
    admin = "Administer a service: users, tokens, projects."
    return [
        Ref("serve", "mleredux_server.cli.serve:command", {"title": title, **here}),
        Ref("server", "mleredux_server.cli.server:command", {"title": admin, **here, "section": "Servers"}),
    ]
