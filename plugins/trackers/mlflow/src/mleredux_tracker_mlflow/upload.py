"""Synchronize an MLflow run with its run's directory. Importing this module imports MLflow."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from mleredux.errors import MlereduxError
from mleredux.plugin.tracker import Run

from mleredux_tracker_mlflow.connection import (
    Metric,
    MlflowClient,
    MlflowException,
    Param,
    RunTag,
    be_quiet_here,
    connect,
    unanswered,
)
from mleredux_tracker_mlflow.facts import Facts, Point, facts_of
from mleredux_tracker_mlflow.files import choose, send_files
from mleredux_tracker_mlflow.masks import masked_text
from mleredux_tracker_mlflow.record import Sent, read_sent, sole_sender, write_sent
from mleredux_tracker_mlflow.settings import Settings

SYNCED = "mleredux.synced"
RUN_ID = "mleredux.run_id"
_METRICS, _OTHERS = 800, 90  # MLflow accepts 1,000 and 100 in one request
_T = TypeVar("_T")


@dataclass
class Present:
    """The known content of the MLflow run, read once and then kept up to date.

    Attributes:
        run_id: Id of the MLflow run.
        points: Key, time and step of each point.
    """

    run_id: str
    experiment_id: str
    status: str
    ended: int | None = None
    params: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    points: set[tuple[str, int, int]] = field(default_factory=set)


class NotSent(MlereduxError):
    """MLflow does not respond, or rejects a request.

    Attributes:
        silent: Whether it does not respond; an immediate retry would be useless.
    """

    silent = False


class Sender:
    """Sends runs to one MLflow store. Not thread-safe.

    Args:
        settings: The destination, and the amount of data to send.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._experiments: dict[str, str] = {}
        be_quiet_here()

    def send(self, run: Run, present: Present | None = None) -> tuple[Present, bool]:
        """Send the missing data, including the files of a finished run. Repeated calls create no duplicates.

        Args:
            present: The result of an earlier call.

        Returns:
            The MLflow run's content, and whether anything was sent.

        Raises:
            NotSent: MLflow does not respond, or rejects a request.
            MlereduxError: The run's directory cannot be read or written, or another process is sending it.
        """
        try:
            with sole_sender(run.path):
                return self._send(run, present)
        except MlereduxError:
            raise
        except ModuleNotFoundError as error:
            raise NotSent(
                f"MLflow at {self.where} requires the package {error.name}.",
                hint="For database stores, run `pip install 'mleredux-tracker-mlflow[database]'`.",
            ) from error
        except Exception as error:  # MLflow's stores raise their libraries' errors
            raise self._not_sent(error) from error

    @cached_property
    def _client(self) -> MlflowClient:
        return connect(self.settings.uri)

    @property
    def where(self) -> str:
        """Return the tracking URI without secrets, for display."""
        return masked_text(self.settings.uri)

    def _not_sent(self, error: Exception) -> NotSent:
        silent = unanswered(error)
        reason = "does not respond" if silent else f"rejected the request: {_one_line(error)}"
        problem = NotSent(f"MLflow at {self.where} {reason}.", hint=_HINT)
        problem.silent = silent
        return problem

    def _send(self, run: Run, present: Present | None) -> tuple[Present, bool]:
        facts = facts_of(run)
        sent = read_sent(run.path, self.settings.uri) if self.settings.record else Sent()
        if present is None:
            present = self._find(run, sent)
            new = present is None
            if present is None:
                present, sent = self._create(run, facts), Sent()
            sent.mlflow_run_id, sent.experiment_id = present.run_id, present.experiment_id
            self._record(run, sent)
            mark = _fingerprint(run, self.settings)
            if not new and facts.ended is not None and present.tags.get(SYNCED) == mark:
                return present, False
            if not new:
                present.points = self._points(present.run_id, {point.key for point in facts.points})
        self._log(present, facts)
        if facts.ended is None:
            if present.status != "RUNNING":
                self._client.update_run(present.run_id, status="RUNNING")
                present.status = "RUNNING"
            return present, True
        self._finish(run, present, facts, sent)
        return present, True

    def _record(self, run: Run, sent: Sent) -> None:
        if self.settings.record:
            write_sent(run.path, self.settings.uri, sent)

    def _find(self, run: Run, sent: Sent) -> Present | None:
        """Find the MLflow run of a run by the run's record or, if it is lost, by its tag, ignoring deleted runs."""
        if sent.mlflow_run_id is not None:
            try:
                return _present(self._client.get_run(sent.mlflow_run_id))
            except MlflowException as error:
                if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                    raise
        experiment, name = self._experiment(run), run.id.replace("'", "")
        matches = self._client.search_runs([experiment], f"tags.`{RUN_ID}` = '{name}'", max_results=1)
        return _present(matches[0]) if matches else None

    def _create(self, run: Run, facts: Facts) -> Present:
        tags = {RUN_ID: run.id, "mleredux.status": facts.tags["mleredux.status"]}
        created = self._client.create_run(self._experiment(run), facts.started, tags, run.id)
        return Present(created.info.run_id, created.info.experiment_id, "RUNNING", tags=tags)

    def _experiment(self, run: Run) -> str:
        name = (self.settings.experiment or run.spec.task)[:250]
        if name not in self._experiments:
            experiment = self._client.get_experiment_by_name(name)
            if experiment is None:
                try:
                    self._experiments[name] = self._client.create_experiment(name)
                    return self._experiments[name]
                except MlflowException as error:
                    if error.error_code != "RESOURCE_ALREADY_EXISTS":  # another process has just created it
                        raise
                    experiment = self._client.get_experiment_by_name(name)
            if experiment is None or experiment.lifecycle_stage != "active":
                raise MlereduxError(
                    f"Experiment {name!r} was deleted in MLflow at {self.where}.",
                    hint="Restore it there, or set MLEREDUX_MLFLOW_EXPERIMENT to another.",
                )
            self._experiments[name] = experiment.experiment_id
        return self._experiments[name]

    def _points(self, run_id: str, keys: Iterable[str]) -> set[tuple[str, int, int]]:
        known = set(self._client.get_run(run_id).data.metrics)
        return {
            (key, metric.timestamp, metric.step)
            for key in sorted(known.intersection(keys))
            for metric in self._client.get_metric_history(run_id, key)
        }

    def _log(self, present: Present, facts: Facts) -> None:
        """Log the facts that are missing in MLflow."""
        params = [Param(key, value) for key, value in facts.params.items() if key not in present.params]
        tags = [RunTag(key, value) for key, value in facts.tags.items() if value != present.tags.get(key, "")]
        points = [point for point in facts.points if _identity(point) not in present.points]
        for some in _chunks(params, _OTHERS):
            self._client.log_batch(present.run_id, params=some)
        for few in _chunks(tags, _OTHERS):
            self._client.log_batch(present.run_id, tags=few)
        for many in _chunks(points, _METRICS):
            metrics = [Metric(point.key, point.value, point.time, point.step) for point in many]
            self._client.log_batch(present.run_id, metrics=metrics)
            present.points |= {_identity(point) for point in many}
        present.params |= {param.key: param.value for param in params}
        present.tags |= {tag.key: tag.value for tag in tags}

    def _finish(self, run: Run, present: Present, facts: Facts, sent: Sent) -> None:
        """Send files, then the final status; the tag that marks the upload as complete comes last."""
        chosen, left_out = choose(run, self.settings.artifact_mb)

        def upload(path: Path, folder: str) -> None:
            self._client.log_artifact(present.run_id, str(path), folder or None)

        try:
            left_out += send_files(run, chosen, sent.files, upload, self.settings.artifact_mb)
        finally:
            self._record(run, sent)
        if (present.status, present.ended) != (facts.status, facts.ended):
            self._client.set_terminated(present.run_id, facts.status, facts.ended)
            present.status, present.ended = facts.status, facts.ended
        last = {"mleredux.files_left_out": str(left_out), SYNCED: _fingerprint(run, self.settings)}
        self._client.log_batch(present.run_id, tags=[RunTag(key, value) for key, value in last.items()])
        present.tags |= last


_HINT = "Once it works, run `mleredux runs track RUN` to send the rest."


def _present(value: Any) -> Present | None:
    if value.info.lifecycle_stage != "active":
        return None
    info, data = value.info, value.data
    return Present(
        info.run_id, info.experiment_id, info.status, info.end_time or None, dict(data.params), dict(data.tags)
    )


def _identity(point: Point) -> tuple[str, int, int]:
    return point.key, point.time, point.step


def _fingerprint(run: Run, settings: Settings) -> str:
    """Return a value that changes when there is more to send: a resumed run, a new artifact, another limit."""
    digest = hashlib.sha256(f"1 {settings.artifact_mb:g} {len(run.events())}".encode())
    for name in ("run.json", "report.json", "scores.json", "artifacts.json"):
        path = run.path / name
        digest.update(path.read_bytes() if path.is_file() else b"-")
    return digest.hexdigest()[:16]


def _chunks(items: Sequence[_T], size: int) -> Iterable[Sequence[_T]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _one_line(error: BaseException) -> str:
    text = masked_text(" ".join(str(error).split())).rstrip(".")
    return (text if len(text) <= 300 else f"{text[:300]}…") or type(error).__name__
