"""What the global options ask for: the plugins, and where commands work."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from mleredux._core.cli.options import NO_CLIENT, server_of

if TYPE_CHECKING:
    from mleredux._core.cli.backend import Backend
    from mleredux._core.plugins import Catalogue

_BACKEND = "mleredux.backend"


def catalogue(ctx: click.Context) -> Catalogue:
    """Return the catalogue that the global options select."""
    from mleredux._core.plugins.catalogue import Catalogue, set_current

    root = ctx.find_root()
    found: Catalogue | None = root.obj
    if found is None:
        found = Catalogue(block=root.params.get("block") or (), load=root.params.get("load") or ())
        root.obj = found
        set_current(found)
    return found


def backend(ctx: click.Context, *, runs_dir: str | None = None, data_dir: str | None = None) -> Backend:
    """Return the back end of this command line: the server that is named, opened once, or this machine.

    Args:
        runs_dir, data_dir: Folders of runs and data on this machine; the default ones if None.

    Raises:
        click.UsageError: A server is named, and the client is not installed.
    """
    url = server_of(ctx)
    if url is None:
        from mleredux._core.cli.local import LocalBackend

        return LocalBackend(catalogue(ctx), runs_dir, data_dir)
    opened: Backend | None = ctx.meta.get(_BACKEND)
    if opened is None:
        opened = catalogue(ctx).hook("mleredux_open_backend")(url=url)
        if opened is None:
            raise click.UsageError(NO_CLIENT, ctx)
        ctx.meta[_BACKEND] = opened
        close: Callable[[], None] | None = getattr(opened, "close", None)
        if close is not None:
            ctx.find_root().call_on_close(close)
    return opened


def explained(ctx: click.Context, error: Exception) -> Exception | None:
    """What the opened back end says of an error of its own."""
    opened: Backend | None = ctx.meta.get(_BACKEND)
    return opened.explain(error) if opened is not None else None
