"""`mleredux runs techniques`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from mleredux.plugin.command import DataStore, data_dir_option, json_option, print_json

if TYPE_CHECKING:
    from mleredux.plugin.artifact import Run, RunStore

    from mleredux_techniques.usage.judgement import TechniqueUse


@click.command("techniques")
@click.argument("runs", nargs=-1, required=True)
@data_dir_option
@json_option
@click.pass_obj
def command(store: RunStore, runs: tuple[str, ...], data_dir: str | None, as_json: bool) -> None:
    """Score RUNS of competitions for the techniques that they used: folds, leaks, encodings.

    The result is kept in each run; `compare --measure technique_use` compares arms by it. It reveals what was planted.
    """
    from mleredux.plugin.artifact import Artifact, add_artifact
    from mleredux.plugin.files import write_atomically

    from mleredux_techniques.usage.judgement import FILE

    results = []
    for name in runs:
        run = store.get(name)
        used = use_of(run, DataStore(data_dir))
        write_atomically(run.path / FILE, used.model_dump_json(indent=1) + "\n")
        title = "Techniques that were used"
        add_artifact(run, Artifact(path=FILE, media_type="application/json", producer="techniques", title=title))
        results.append(used)
        if not as_json:
            click.echo(_shown(used))
    if as_json:
        print_json([used.model_dump(mode="json") for used in results])


def use_of(run: Run, data: DataStore) -> TechniqueUse:
    """Score a finished run.

    Raises:
        MlereduxError: It is a technique run, or has no valid submission.
    """
    import pandas as pd
    from mleredux.errors import MlereduxError, NotApplicable
    from mleredux.plugin.command import current
    from mleredux.plugin.files import open_below
    from mleredux.plugin.host import prepare
    from mleredux_rollout import texts_of

    from mleredux_techniques.kit import TRUTH_FILE, load
    from mleredux_techniques.usage.code import read
    from mleredux_techniques.usage.judgement import judge

    report, catalogue = run.report, current()
    if report is None or report.score is None or "@" in run.spec.task:
        hint = "Give graded runs of competitions; technique runs have a score of their own."
        raise MlereduxError(f"Run {run.id} is not a run of a competition with a valid submission.", hint=hint)
    task, truths, dataset = catalogue.task(run.spec.task), {}, None
    for technique in ("leakage", "cv", "encoding"):
        try:
            prepared = prepare(asked := catalogue.task(f"{technique}@{task.id}"), catalogue, data)
        except (NotApplicable, MlereduxError):
            continue  # the question does not apply to this data
        dataset = load(prepared.private)
        truths[technique] = _json(prepared.private / TRUTH_FILE)
        planted = dataset.planted.get("about", {}).get(asked.id.partition("@")[0])
        truths[technique]["planted"] = planted
    if dataset is None:
        raise MlereduxError(f"No technique applies to {task.id}.", hint="See `mleredux list techniques`.")
    submission = task.submission
    with open_below(run.path, report.submission_path) as file:
        table = pd.read_csv(file)
    keys, test = list(submission.id_columns), dataset.test
    targets = [name for name in table.columns if name not in keys]
    if keys and all(name in test for name in keys):
        merged = test[keys].astype(str).merge(table.astype(dict.fromkeys(keys, str)), on=keys, how="left")
        kept = merged[targets].notna().all(axis=1).to_numpy()
        predictions, test = merged.loc[kept, targets].reset_index(drop=True), test[kept].reset_index(drop=True)
    elif len(table) == len(test):
        predictions = table[targets]
    else:
        raise MlereduxError(f"The predictions of {run.id} can't be assigned to the test rows.", hint="Check its ids.")
    return judge(run.id, task.id, read(texts_of(run)), truths, test, predictions, _optimism(run))


def _optimism(run: Run) -> float | None:
    """How much better the validation of the last version was than the test, in |gold − median|."""
    report, rollout = run.report, run.rollout
    if report is None or rollout is None or report.score is None:
        return None
    if report.gold_threshold is None or report.median_threshold is None:
        return None
    values = [
        extra["validation_metric"]
        for step in rollout.steps
        if isinstance(extra := step.extra, dict)
        and extra.get("submission_version")
        and isinstance(extra.get("validation_metric"), int | float)
    ]
    scale = abs(report.gold_threshold - report.median_threshold)
    if not values or not scale:
        return None
    sign = -1 if report.is_lower_better else 1
    return sign * (float(values[-1]) - report.score) / scale


def _json(path: Any) -> dict[str, Any]:
    import json

    found: dict[str, Any] = json.loads(path.read_bytes())
    return found


def _shown(used: TechniqueUse) -> str:
    reward = "not judged" if used.reward is None else f"{used.reward:.2f}"
    lines = [f"{used.run} ({used.task}): technique use {reward}"]
    for use in used.uses:
        score = "–" if use.score is None else f"{use.score:.2f}"
        lines.append(f"  {use.technique} {score} ({use.effect}): {' '.join(use.why)}")
    return "\n".join(lines)
