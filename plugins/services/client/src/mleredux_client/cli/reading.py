"""`mleredux logs` and `mleredux artifacts` on a server."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
from mleredux._core.cli import artifacts as local_artifacts
from mleredux._core.cli import logs as local_logs
from mleredux.plugin.command import print_json, print_table

from mleredux_client.cli.service import service
from mleredux_client.cli.twins import twin


@twin("logs", local_logs.command, help="Show the log of RUN on the server: by id, a part of it, or `last`.")
def logs(ctx: click.Context, run: str, build: bool, follow: bool, raw: bool) -> None:
    """Copy a log to stdout."""
    from mleredux.plugin.command import printable

    from mleredux_client.cli.watching import log_texts

    there = service(ctx)
    found = there.run(run)
    name = "build.log" if build else "agent.log"
    blocks = (
        (text.encode() for text in log_texts(there, found["id"], name))
        if follow
        else there.content(f"/v1/runs/{found['id']}/logs/{name}")
    )
    for block in blocks:
        sys.stdout.buffer.write(block if raw else printable(block).encode())
        sys.stdout.flush()


@twin(
    "artifacts",
    local_artifacts.command,
    help="List a run's artifacts on the server, or copy them here.\n\nRUN is an id, a part of one, or `last`.",
)
def artifacts(ctx: click.Context, run: str, download: Path | None, producer: str | None, as_json: bool) -> None:
    """List or copy."""
    there = service(ctx)
    found = there.run(run)
    listed: list[dict[str, Any]] = [
        item for item in there.pages(f"/v1/runs/{found['id']}/artifacts", {}) if producer in (None, item["producer"])
    ]
    if download is not None:
        there.download(found["id"], listed, download)
        click.echo(f"Copied {len(listed)} artifacts to {download}.", err=True)
    if as_json:
        print_json(listed)
    elif download is None:
        print_table(listed, ("size", "producer", "media_type", "path"))
        click.echo(f"in {there.url}/v1/runs/{found['id']}")
