"""The HTTP service of mleredux: `mleredux serve`.

| modules | contents |
|---|---|
| `address`, `settings`, `listener`, `cli` | what `mleredux serve` is given; its commands |
| `app`, `service`, `ownership`, `health` | the application, its shared state, one server a database, whether it works |
| `middleware`, `request_log`, `limits`, `problems` | each request: limits, its id and log, rates, errors as documents |
| `security`, `identity`, `accounts` | who asks; ids and tokens; users, projects and tokens |
| `api`, `schemas`, `openapi`, `etags`, `idempotency` | the routes and their documents; repeated responses |
| `lookup`, `views`, `run_lists` | what a caller may see, as documents; lists of runs |
| `references`, `uploaded`, `sources` | which agents users may name; agents that they upload |
| `runs`, `admission`, `creation`, `extension`, `changes` | runs: checked, admitted, created, extended, changed |
| `builds`, `submissions`, `deadlines` | builds; predictions without an agent; grades that are held back |
| `scheduler`, `work` | queued jobs and workers; the work of each type of job |
| `files`, `streams`, `retention` | files of runs; live streams; how long ended runs are kept |
| `secrets`, `vault`, `lent` | secrets of users: written, encrypted, lent to runs |
| `messages`, `deliverer` | webhooks: messages stored and delivered |
| `web` | pages behind the accounts of this server |
| `database`, `backup`, `audit` | users, requests and the queue; one portable file of it; who changed what |
| `logs`, `metrics`, `traces` | what operators read |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mleredux.plugin import Ref, hookimpl

if TYPE_CHECKING:
    from mleredux.plugin.agent import Agent

mleredux_contract = 2
__version__ = "0.2.0"


@hookimpl
def mleredux_find_agent(reference: str) -> Agent | None:
    """Find an agent that a user uploaded to this server."""
    if not reference.startswith("upload:"):
        return None
    from mleredux_server.uploaded import uploaded_agent

    return uploaded_agent(reference)


@hookimpl
def mleredux_register_commands() -> list[Ref]:
    """`serve` starts the service; `server` administers its database."""
    return [
        Ref("serve", "mleredux_server.cli.serve:command", {"title": "Start the HTTP service.", "section": "Servers"}),
        Ref(
            "server",
            "mleredux_server.cli.server:command",
            {"title": "Administer a service: users, tokens, projects.", "section": "Servers"},
        ),
    ]
