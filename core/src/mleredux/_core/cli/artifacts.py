"""`mleredux artifacts`."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from mleredux._core.cli.output import json_option, print_json, print_table, runs_dir_option


@click.command()
@click.argument("run", default="last")
@click.option("--download", type=click.Path(path_type=Path, file_okay=False), help="Copy them into this folder.")
@click.option("--producer", help="Only those of this producer (agent, mleredux, a plugin).")
@runs_dir_option
@json_option
def command(run: str, download: Path | None, producer: str | None, runs_dir: str | None, as_json: bool) -> None:
    """List the artifacts of RUN (by id, a part of it, or `last`), or copy them somewhere."""
    from mleredux._core.store import RunStore
    from mleredux._core.submissions.validation import open_regular
    from mleredux.errors import MlereduxError, NotFound

    found = RunStore(runs_dir).get(run)
    manifest = found.manifest
    if manifest is None:
        raise NotFound(f"Run {found.id} has no manifest yet.", hint=f"It is in state {found.state}.")
    chosen = [artifact for artifact in manifest.artifacts if producer in (None, artifact.producer)]
    if download is not None:
        for artifact in chosen:
            target = download / artifact.path
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                with open_regular(found.path / artifact.path) as source, target.open("wb") as copy:
                    shutil.copyfileobj(source, copy, 1 << 20)
            except OSError as error:
                raise MlereduxError(f"Artifact {artifact.path} can't be copied to {target}: it {error}.") from error
        click.echo(f"Copied {len(chosen)} artifacts to {download}.", err=True)
    if as_json:
        print_json([artifact.model_dump(mode="json") for artifact in chosen])
    elif download is None:
        print_table([artifact.model_dump() for artifact in chosen], ("size", "producer", "media_type", "path"))
        for item in manifest.left_out:
            click.echo(f"left out: {item['path']}: {item['reason']}")
        click.echo(f"in {found.path}")
