"""`mleredux report`."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click
from mleredux.errors import MlereduxError
from mleredux.models.formats import counted
from mleredux.plugin.command import data_dir_option, runs_dir_option

from mleredux_view.command import output_option


@click.command("report")
@click.argument("runs", nargs=-1)
@output_option(required=True, help="The new folder.")
@runs_dir_option
@data_dir_option
def command(runs: tuple[str, ...], folder: Path, runs_dir: str | None, data_dir: str | None) -> None:
    """Write a page about RUNS, and pages about each run, to a folder that can be opened offline.

    RUNS are ids, parts of ids, paths or `last`; by default, all runs. The page has a table with the score over time
    of each run and links to its pages; `mleredux view` serves the same pages live.
    """
    from mleredux.plugin.artifact import RunStore

    from mleredux_view.export import export
    from mleredux_view.local import LocalSource

    store = RunStore(runs_dir)
    paths = [Path(store.get(name).path).resolve() for name in runs] or [store.path / name for name in store.ids()]
    if not paths:
        raise MlereduxError(f"There are no runs in {store.path}.", hint="Choose another folder with --runs-dir.")
    with tempfile.TemporaryDirectory(prefix="mleredux-report-") as chosen:
        for path in dict.fromkeys(paths):
            (Path(chosen) / path.name).symlink_to(path.resolve())
        export(LocalSource(RunStore(chosen), data_dir, place=str(store.path)), folder)
    index = folder / "index.html"
    click.echo(f"Wrote the pages of {counted(len(set(paths)), 'run')}. Open {index}.")
