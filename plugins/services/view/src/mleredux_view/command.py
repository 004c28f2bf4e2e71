"""`mleredux view`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click
from mleredux.models.formats import counted
from mleredux.plugin.command import data_dir_option, runs_dir_option

_NEW_FOLDER: click.Path = click.Path(file_okay=False, path_type=Path)
output_option = partial(click.option, "-o", "--output", "folder", metavar="DIR", type=_NEW_FOLDER)


@click.command("view")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port to listen on.  [default: a free one]")
@click.option("--no-browser", is_flag=True, help="Print the address without opening it.")
@output_option(help="Write the pages to a new folder that can be opened offline, and serve nothing.")
@runs_dir_option
@data_dir_option
def command(port: int, no_browser: bool, folder: Path | None, runs_dir: str | None, data_dir: str | None) -> None:
    """Show the runs of a directory in a browser, live or offline.

    The pages are served to this machine only, at a URL that only works once, for the first browser that opens it.
    """
    from mleredux.plugin.artifact import RunStore

    from mleredux_view.local import LocalSource

    source = LocalSource(RunStore(runs_dir), data_dir)
    if folder is not None:
        from mleredux_view.export import export

        count = export(source, folder)
        click.echo(f"Wrote {counted(count, 'page')} to {folder}. Open {folder / 'index.html'}.")
        return
    from mleredux_view.listener import serve

    serve(source, port, browser=not no_browser, listening=click.echo)
