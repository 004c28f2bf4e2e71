"""`mleredux publish`."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
from mleredux.errors import MlereduxError
from mleredux.models.formats import counted
from mleredux.plugin.command import current, data_dir_option, echo

_MOST = 1_000_000


class _Range(click.ParamType[range]):
    """A range of seeds, such as `1..100`, with both ends."""

    name = "A..B"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> range:
        """Return the range."""
        match = re.fullmatch(r"([0-9]{1,10})\.\.([0-9]{1,10})", str(value))
        seeds = range(int(match[1]), int(match[2]) + 1) if match else range(0)
        if not 0 < len(seeds) <= _MOST:
            self.fail(f"{value!r} is not a range of seeds such as 1..100, of at most {_MOST:,}.", param, ctx)
        return seeds


@click.command("publish")
@click.argument("tasks", metavar="TASK...", nargs=-1)
@click.option("--set", "sets", multiple=True, metavar="NAME", help="Include all tasks of this set.")
@click.option("--seeds", type=_Range(), help="Range of numbers to replace the word SEED in TASKs.")
@click.option("-o", "--output", "folder", type=click.Path(path_type=Path), help="A new, empty or unfinished folder.")
@click.option("--name", help="Name of the set.  [default: the folder's name]")
@click.option(
    "--evaluation", type=click.FloatRange(0, 1), default=0.2, show_default=True, help="Share of seeds for evaluation."
)
@click.option(
    "--certify",
    "certified",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="Maximum number of tasks to certify in each part.",
)
@click.option("--check", type=click.Path(file_okay=False, path_type=Path), help="Only check this published folder.")
@data_dir_option
def command(
    tasks: tuple[str, ...], sets: tuple[str, ...], seeds: range | None, folder: Path | None, name: str | None,
    evaluation: float, certified: int, check: Path | None, data_dir: str | None,
) -> None:  # fmt: skip
    """Write TASKs as a folder for publication: a dataset of Harbor tasks with registry and card, a package for
    verifiers, and a space for OpenEnv. Nothing is uploaded.

    SEED in a TASK, as in synthetic-micro-SEED, is replaced by the numbers of --seeds: public seeds in the training
    part, the installation's secret seeds in the evaluation part. Certified tasks that are not sound are left out.
    """
    from mleredux_bridge_harbor.publish import plan, problems, publish

    if check is not None:
        sentences = list(problems(check))
        echo("\n".join(sentences) or f"{check}: all checksums are correct, and the parts are disjoint.")
        raise SystemExit(3 if sentences else 0)
    chosen = current().task_names(tasks, sets) if sets else list(tasks)
    if not chosen or folder is None:
        raise click.UsageError(
            "Specify a task and a folder: `mleredux publish synthetic-micro-SEED --seeds 1..9 -o DIR`."
        )
    if find_spec("huggingface_hub") is None:
        raise MlereduxError("The card requires huggingface_hub.", hint="Install it: `pip install huggingface_hub`.")
    facts = publish(plan(chosen, name or folder.name, seeds or range(0), evaluation), folder, certified, data_dir)
    for part, content in facts.items():
        total = counted(content["tasks"], "task")
        echo(f"{part}: {total}, {content['certified']} certified, {content['left_out']} left out")
    echo(f"{folder} contains answers; nothing was uploaded.")
