"""The Python API: `mleredux.run("digits", agent="baseline")` and related functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mleredux._core.data.datastore import DataStore, Prepared
from mleredux._core.pipeline import Pipeline
from mleredux._core.planning.grants import read_grants
from mleredux._core.planning.plans import plan
from mleredux._core.plugins import current
from mleredux._core.plugins.discovery import provided
from mleredux._core.records import listed
from mleredux._core.store import Run, RunStore
from mleredux.errors import plain_faults
from mleredux.models import Grants, Report, SubmissionSchema, Verdict
from mleredux.models.request import Request


def tasks(**wanted: Any) -> list[dict[str, Any]]:
    """List tasks as `mleredux list` does, filtered by field values (`category="Tabular"`)."""
    return [row for row in listed(current(), "tasks") if all(row.get(key) == value for key, value in wanted.items())]


@plain_faults()
def run(
    task: str,
    agent: str = "baseline",
    *,
    sandbox: str | None = None,
    seed: int = 0,
    time_limit: float | None = None,
    limits: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    network: str | None = None,
    grants: Grants | Mapping[str, Any] | None = None,
    obfuscated: bool = False,
    verify: bool = False,
    context: str | None = None,
    base_image: str | None = None,
    executor: str | None = None,
    object_store: str | None = None,
    runs_dir: Path | str | None = None,
    data_dir: Path | str | None = None,
    progress: Callable[[Run, str], None] = lambda _run, _message: None,
) -> Run:
    """Prepare the task, run the agent on it, grade the submission, and store all artifacts.

    Args:
        task: Id of a task, optionally with a variant: `digits`, `spaceship-titanic+fixed`.
        agent: Id of an agent, or the path of a script, a notebook or a folder.
        sandbox: Id of a sandbox; None: the best sandbox that meets the agent's requirements.
        seed: Random seed for the agent.
        time_limit: Time limit of the agent in seconds.
        limits: Other fields of `Limits` to change.
        options: Options of the agent to change.
        network: `none`, `gateway` or `open`; None: the agent's default. The open network of an agent found by a
            reference (`repo:…`) must be specified here.
        grants: The agent's additional access: `{"variables": [...], "hosts": [...], "build_hosts": [...], "images":
            [...], "llm_fields": [...], "llm_models": [...], "tools": [...]}`: `tools` are MCP servers and skills. An
            agent found by a reference gets nothing that it requests unless it is listed here.
        obfuscated: Whether the agent gets the description without the competition's name and story.
        verify: Whether to execute the final code again on permuted test data, to verify the result.
        context: Additional text for the agent.
        base_image: Base image, if an image is built.
        executor: Id of an executor, which places the run on a machine; None: this process executes it.
        object_store: URL of an object store for the executor's nodes; None: they share the file system.
        runs_dir: Folder for runs; None: `default_runs_dir()`.
        data_dir: Folder for data; None: `default_data_dir()`.
        progress: Called with short progress messages.

    Returns:
        The finished run: `run.state`, `run.report`, `run.path`.

    Raises:
        NotFound: The task, agent or sandbox does not exist.
        NotGranted: The agent requests access that was not granted.
        MlereduxError: The request is invalid, or can't be met on this machine.
    """
    store, data = RunStore(runs_dir), DataStore(data_dir)
    request = Request.single(
        task,
        agent,
        sandbox=sandbox,
        seed=seed,
        limits={**(limits or {}), **({"time_limit": time_limit} if time_limit is not None else {})},
        options=dict(options or {}),
        network=network,
        grants=grants if isinstance(grants, Grants) else read_grants(**(grants or {})),
        obfuscated=obfuscated,
        verify=verify,
        context=context,
    )
    [planned] = plan(request, current(), own_machine=True)
    place = current().executor(executor) if executor else None
    pipeline = Pipeline(store, current(), data, 1, base_image, progress, executor=place, object_store=object_store)
    return pipeline.execute([store.create(planned, data.path)])[0]


@plain_faults()
def experiment(
    plan: Mapping[str, Any] | Path | str, *, runs_dir: Path | str | None = None, data_dir: Path | str | None = None
) -> Any:
    """Freeze the plan of an experiment, or open the experiment with its name: `experiment(plan).run().analyse()`.

    Args:
        plan: The fields of a plan file, the path of a plan file, or the folder or name of an experiment.
        runs_dir: Folder for runs; None: `default_runs_dir()`.
        data_dir: Folder for data; None: `default_data_dir()`.

    Returns:
        A `mleredux_experiments.sdk.Experiment`.

    Raises:
        MlereduxError: No installed package executes experiments, or the plan can't be executed on this machine.
    """
    return provided("experiment")(plan, runs_dir=runs_dir, data_dir=data_dir)


@plain_faults()
def prepare(task: str, *, data_dir: Path | str | None = None, force: bool = False) -> Prepared:
    """Prepare a task's files, unless they are already prepared.

    Args:
        task: Id of a task.
        data_dir: Folder for data; None: `default_data_dir()`.
        force: Whether to prepare the files again even if they are prepared.

    Raises:
        NotFound: The task does not exist.
        DataError: Raw data is missing or damaged.
    """
    from mleredux._core.stages.prepare import prepare as prepare_stage

    return prepare_stage(current().task(task), current(), DataStore(data_dir), force=force)


@plain_faults()
def grade(submission: Path | str, task: str, *, data_dir: Path | str | None = None) -> Report:
    """Grade a submission file, valid or invalid, against the answers.

    Args:
        submission: Path of the submission file.
        task: Id of a task.
        data_dir: Folder for data; None: `default_data_dir()`.

    Raises:
        NotFound: The task does not exist.
        DataError: The task is not prepared and can't be prepared.
        TaskBroken: The task is faulty, not the submission.
    """
    from mleredux._core.stages.grade import grade as grade_stage
    from mleredux._core.submissions.files import named, submitted

    prepared, file, declared = prepare(task, data_dir=data_dir), submitted(submission), current().task(task)
    report = grade_stage(declared, file, prepared.private, current(), shown_path=str(submission))
    message = named(report.message, declared.submission.file, submission) if report.message else None
    return report.model_copy(update={"message": message})


@plain_faults()
def validate(submission: Path | str, task: str, *, data_dir: Path | str | None = None) -> Verdict:
    """Check whether a submission file is well-formed, without opening the answers.

    Args:
        submission: Path of the submission file.
        task: Id of a task.
        data_dir: Folder for data; None: `default_data_dir()`.

    Raises:
        NotFound: The task does not exist.
        DataError: The task is not prepared and can't be prepared.
    """
    from mleredux._core.submissions.files import named
    from mleredux._core.submissions.schema import read_schema
    from mleredux._core.submissions.validation import validate as check

    schema: SubmissionSchema = read_schema(prepare(task, data_dir=data_dir).schema)
    verdict = check(schema, Path(submission))
    return verdict.model_copy(update={"message": named(verdict.message, schema.file, submission)})
