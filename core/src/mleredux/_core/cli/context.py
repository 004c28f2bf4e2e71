"""Resolve the global options: the plugins, and the backend of commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mleredux._core.cli.options import NO_CLIENT, server_of

if TYPE_CHECKING:
    from mleredux._core.cli.backend import Backend
    from mleredux._core.plugins import Catalogue

_BACKEND = "mleredux.backend"
_NO_URL = "The value of --server is not a server's URL. Write it like https://mleredux.example:8000."


def catalogue(ctx: click.Context) -> Catalogue:
    """Return the catalogue of the plugins selected by the global options."""
    from mleredux._core.plugins.catalogue import Catalogue, set_current

    root = ctx.find_root()
    selected: Catalogue | None = root.obj
    if selected is None:
        selected = Catalogue(block=root.params.get("block") or (), load=root.params.get("load") or ())
        root.obj = selected
        set_current(selected)
    return selected


def has_client(ctx: click.Context) -> bool:
    """Return whether a plugin opens servers."""
    plugins = catalogue(ctx)
    return "https" in plugins.entries("schemes") or bool(plugins.hook("mleredux_open_backend").get_hookimpls())


def backend(ctx: click.Context, *, runs_dir: str | None = None, data_dir: str | None = None) -> Backend:
    """Return the backend of this command line: the given server, opened once, or this machine.

    Args:
        runs_dir, data_dir: Folders for runs and data on this machine; None: the default folders.

    Raises:
        click.UsageError: A server is given, but the client is not installed, or the URL has another scheme.
    """
    url = server_of(ctx)
    if url is None:
        from mleredux._core.cli.local import LocalBackend

        return LocalBackend(catalogue(ctx), runs_dir, data_dir)
    opened: Backend | None = ctx.meta.get(_BACKEND)
    if opened is None:
        opened = catalogue(ctx).call_scheme("open_backend", url)
        if opened is None:
            raise click.UsageError(_NO_URL if has_client(ctx) else NO_CLIENT, ctx)
        ctx.meta[_BACKEND] = opened
        if close := getattr(opened, "close", None):
            ctx.find_root().call_on_close(close)
    return opened


def explained(ctx: click.Context, error: Exception) -> Exception | None:
    """Return the explanation of an error by the open backend that raised it."""
    opened: Backend | None = ctx.meta.get(_BACKEND)
    return opened.explain(error) if opened is not None else None
