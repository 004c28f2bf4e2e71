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

from mleredux.plugin import Ref, hookimpl

mleredux_contract = 2
_HEADERS = ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS")
mleredux_withheld = ("MLEREDUX_DATABASE", "PGPASSWORD", *_HEADERS)


@hookimpl
def mleredux_register_schemes() -> list[Ref]:
    """Return the scheme of agents that users uploaded to this server."""
    return [Ref("upload", "mleredux_server.runs.uploaded:SCHEME")]


@hookimpl
def mleredux_register_commands() -> list[Ref]:
    """`serve` starts the service; `server` administers its database."""
    here, title = {"section": "Common", "place": "machine"}, "Start the HTTP service."
    admin = "Administer a service: users, tokens, projects."
    return [
        Ref("serve", "mleredux_server.cli.serve:command", {"title": title, **here}),
        Ref("server", "mleredux_server.cli.server:command", {"title": admin, **here, "section": "Servers"}),
    ]
