"""A server as the backend of commands: sends their requests, and returns the responses in the form that they print."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import click
from mleredux.errors import MlereduxError
from mleredux.models import Event, NotSubmitted, Report, Unusable, Verdict
from mleredux.models.formats import counted
from mleredux.plugin.command import Batch, Progress, Record, RunPage, RunRequest, RunView
from mleredux.plugin.experiment import SET
from mleredux.plugin.host import submitted

from mleredux_client._sync.uploads import uploaded
from mleredux_client.calls import act, create, known, segment
from mleredux_client.cli.context import explained, service_option
from mleredux_client.cli.records import record_of, row_of, view_of
from mleredux_client.cli.service import Service
from mleredux_client.errors import Conflict, Invalid, MlereduxApiError, NotFound, TooLarge
from mleredux_client.models.run import FINAL

_AT_ONCE = 4


class ServerBackend:
    """The backend of commands with `--server`.

    Args:
        service: The server.
        named: Its URL as the user wrote it.
    """

    def __init__(self, service: Service, named: str) -> None:
        self.service, self.named = service, named

    def close(self) -> None:
        """Close all connections."""
        self.service.close()

    def explain(self, error: Exception) -> MlereduxError | None:
        """Convert an error of the server to a mleredux error."""
        return explained(error, self.named) if isinstance(error, MlereduxApiError) else None

    @property
    def place(self) -> str:
        """The location of runs, for display."""
        return f"on {self.service.url}"

    def listed(self, kind: str, *, sets: tuple[str, ...], category: str | None, technique: str | None) -> list[Record]:
        """Return the server's plugins of a kind."""
        rows: dict[str, Record] = {}
        for wanted in sets or (None,):
            params = {"set": wanted, "category": category, "technique": technique}
            rows |= {row["id"]: row for row in self.service.pages(f"/v1/{kind}", params)}
        return list(rows.values())

    def task(self, name: str, *, obfuscated: bool) -> Record:
        """Return a task's record with its description."""
        return self._get(f"/v1/tasks/{segment(name)}", {"obfuscated": "true"} if obfuscated else {})

    def agent(self, name: str) -> Record:
        """Return an agent's record."""
        return self._get(f"/v1/agents/{segment(name)}")

    def grade(self, submission: Path | str | None, task: str, *, project: str | None) -> Report:
        """Return the server's report on a file, or a local one if the file can't be sent; `submission_path` is the
        given path."""
        file = submitted(submission or "")
        if not isinstance(file, Path):
            return _not_sent(self.task(task, obfuscated=False), str(submission or ""), file)
        report = self.service.grade(file, task, project=project)
        message = _named(report.message, str(submission))
        return report.model_copy(update={"submission_path": str(submission), "message": message})

    def grade_jsonl(self, listed: Path, *, output_dir: Path | None, project: str | None) -> tuple[Record, Path | None]:
        """Grade each line of a `submission.jsonl`, several concurrently."""
        from mleredux_grading import aggregate_reports, read_jsonl, write_report

        def graded(line: Any) -> Report:
            name, path = line.competition_id, line.submission_path
            try:
                report = None if line.problem else self.grade(path, name, project=project)
            except (NotFound, Invalid, TooLarge, Conflict) as error:
                return Report.model_validate(line.refused(str(self.explain(error))))
            return report or Report.model_validate(line.refused(line.problem))

        with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
            total = aggregate_reports(list(pool.map(graded, read_jsonl(listed, lenient=True))))
        return total, write_report(total, output_dir) if output_dir is not None else None

    def validate(self, submission: Path, task: str) -> Verdict:
        """Return the server's verdict on a file's format."""
        if not isinstance(file := submitted(submission), Path):
            self.task(task, obfuscated=False)
            return Verdict(valid=False, message=f"{submission} {file.problem}.")
        verdict = self.service.validate(submission, task)
        return verdict.model_copy(update={"message": _named(verdict.message, str(submission))})

    def create(self, request: RunRequest) -> Batch:
        """Request one run, or an experiment of several."""
        if request.plan is not None:
            created = self.service.json(create("/v1/experiments", self._plan(request)))
            return self.batch(created["runs"], created["id"])
        runs = request.runs
        agents = list(dict.fromkeys(uploaded(self.service.http, name, request.project) for name in runs.arms))
        if not agents:
            names = ", ".join(item["id"] for item in self.service.pages("/v1/agents", {})) or "none is installed there"
            raise click.UsageError(f"Choose an agent with --agent; available: {names}.")
        arm = next(iter(runs.arms.values()))
        sets = [name.removeprefix(SET) for name in runs.tasks if name.startswith(SET)]
        tasks = list(dict.fromkeys(name for name in runs.tasks if not name.startswith(SET)))
        seeds = list(dict.fromkeys(runs.seeds))
        same = arm.model_dump(mode="json", exclude={"agent", "contexts"}, exclude_defaults=True, exclude_none=True)
        same |= {name: getattr(request, name) or None for name in ("project", "priority", "labels", "preemptible")}
        same |= {"context": arm.contexts.get("*"), "secrets": list(request.secrets) or None}
        if sets or len(tasks) * len(agents) * len(seeds) > 1:
            matrix = {"name": request.name, "tasks": tasks, "sets": sets or None, "agents": agents, "seeds": seeds}
            created = self.service.json(create("/v1/experiments", known({**matrix, **same})))
            return self.batch(created["runs"], created["id"])
        if request.name:
            raise click.UsageError("--name is for an experiment of several runs; label a single run with --label.")
        single = {"task": tasks[0], "agent": agents[0], "seed": seeds[0]}
        return self.batch([self.service.json(create("/v1/runs", known({**single, **same})))])

    def check(self, request: RunRequest) -> Record:
        """Estimate the time and cost of a plan's experiment."""
        document: Record = self.service.json(create("/v1/experiments/check", self._plan(request)))
        return document

    def _plan(self, request: RunRequest) -> dict[str, Any]:
        """Return the body of the request for a plan; local agents are uploaded, and context files are sent as text."""
        assert request.plan is not None
        plan = request.plan.model_dump(mode="json", exclude_unset=True)
        for arm in plan["arms"].values():
            arm.pop("context", None)
            arm["agent"] = uploaded(self.service.http, arm["agent"], request.project)
            if grid := arm.get("grid", {}).get("agent"):
                arm["grid"]["agent"] = [uploaded(self.service.http, agent, request.project) for agent in grid]
        return known({"plan": plan, "project": request.project, "secrets": list(request.secrets) or None})

    def batch(self, runs: list[Record], experiment: str | None = None) -> Batch:
        """Return runs from the server's response, for `finish`."""
        subject = f"experiment {experiment}, {counted(len(runs), 'run')}" if experiment else f"run {runs[0]['id']}"
        names = f"--experiment {experiment}" if experiment else " ".join(run["id"] for run in runs)
        option = service_option(self.named)
        return Batch(
            runs,
            [record_of(run, self.service.url) for run in runs],
            experiment,
            note=f"Requested {subject} on {self.service.url}.",
            later=f"Wait: `mleredux runs wait {names}{option}`. Stop: `mleredux runs cancel {names}{option}`.",
        )

    def finish(self, batch: Batch, progress: Progress, *, cancel_on_interrupt: bool = False) -> list[RunView] | None:
        """Watch runs until they have ended, or until Ctrl-C or SIGTERM stops watching."""
        from mleredux_client.cli.watching import MOST_LOGS, Watch, interruptible

        if progress.following and len(batch.runs) > MOST_LOGS:
            click.echo(f"The logs of the first {MOST_LOGS} runs are shown.", err=True)
        try:
            watch = Watch(self.service, batch.runs, batch.experiment, progress)
            with interruptible(watch.request_cancel if cancel_on_interrupt else None):
                ended = watch.wait()
        except KeyboardInterrupt:
            return None
        alone = len(ended) == 1
        return [self._view(run, None if alone else run["id"]) for run in ended]

    def runs(self, filters: Mapping[str, Any], limit: int) -> RunPage:
        """Return runs that the caller may see."""
        page = list(islice(self.service.pages("/v1/runs", filters, limit + 1), limit + 1))
        return RunPage([row_of(run) for run in page[:limit]], "more" if len(page) > limit else None)

    def find(self, name: str) -> str:
        """Return a run's id."""
        run_id: str = self.service.run(name)["id"]
        return run_id

    def view(self, run_id: str) -> RunView:
        """Return the current state of a run."""
        return self._view(self._get(f"/v1/runs/{run_id}"))

    def events(self, run_id: str) -> Iterable[Event]:
        """Return the events of a run."""
        events = self.service.pages(f"/v1/runs/{run_id}/events", {})
        return (Event.model_validate(event, extra="ignore") for event in events)

    def log(self, run_id: str, *, build: bool, follow: bool) -> Iterator[bytes]:
        """Yield the current content of a log, or follow it."""
        from mleredux_client.cli.watching import log_texts

        name = "build.log" if build else "agent.log"
        if follow:
            return (text.encode() for text in log_texts(self.service, run_id, name))
        return self.service.content(f"/v1/runs/{run_id}/logs/{name}")

    def artifacts(self, run_id: str) -> tuple[list[Record], list[Record]]:
        """Return the artifacts of a run."""
        return list(self.service.pages(f"/v1/runs/{run_id}/artifacts", {})), []

    def download(self, run_id: str, artifacts: list[Record], folder: Path) -> None:
        """Download artifacts, each checked against its hash."""
        self.service.download(run_id, artifacts, folder)

    def location(self, run_id: str) -> str:
        """Return a run's URL."""
        return f"{self.service.url}/v1/runs/{run_id}"

    def cancel(self, runs: tuple[str, ...], experiment: str | None) -> Iterator[str]:
        """Cancel runs."""
        if experiment is not None:
            self.service.cancel([], experiment)
            yield f"Asked experiment {experiment} to stop."
        for run in [self.service.run(name) for name in runs]:
            cancelled = self.service.act(f"/v1/runs/{run['id']}/cancel")
            ended = run["status"] in FINAL
            yield f"{run['id']} is already {cancelled['status']}." if ended else f"Asked {run['id']} to stop."

    def experiment(self, name: str, action: str | None = None, body: Mapping[str, Any] | None = None) -> Record:
        """Return an experiment by id or name, possibly after an action, or its analysis or table."""
        path = f"/v1/experiments/{segment(self._experiment_id(name))}"
        if action in (None, "analysis", "table"):
            return self._get(path if action is None else f"{path}/{action}", dict(body or {}))
        call = act(f"{path}/{action}") if body is None else create(f"{path}/{action}", body)
        document: Record = self.service.json(call)
        return document

    def _experiment_id(self, name: str) -> str:
        """Return the id of the only experiment with a name, or the name if there is none."""
        matches = self._get("/v1/experiments", {"name": name, "limit": 10})["items"]
        if len(matches) > 1:
            ids = ", ".join(f"{item['id']} ({item['created_at'][:16]})" for item in matches)
            raise MlereduxError(f"Several experiments are named {name!r}.", hint=f"Specify one by its id: {ids}.")
        return str(matches[0]["id"]) if matches else name

    def delete(self, run_id: str) -> None:
        """Delete a run on the server."""
        self.service.delete(f"/v1/runs/{run_id}")

    def _get(self, path: str, params: Mapping[str, Any] | None = None) -> Record:
        document: Record = self.service.get(path, params)
        return document

    def _view(self, run: Record, artifacts: str | None = None) -> RunView:
        return view_of(
            run, self.service.url, artifacts or f"mleredux artifacts {run['id']}{service_option(self.named)}"
        )


def _named(message: Any, path: str) -> Any:
    """Replace the task's file name in a message about a submission with the name that the user gave."""
    return re.sub(r"^submission\.\w+(?= )", lambda _: path, message) if message else message


def _not_sent(facts: Record, path: str, problem: NotSubmitted | Unusable) -> Report:
    """Return the report that `mleredux grade` gives on a missing submission, from public information about the task."""
    file = facts["submission"]["file"]
    return Report(
        competition_id=facts["id"],
        score=None,
        **{f"{name}_threshold": value for name, value in (facts["thresholds"] or {}).items()},
        submission_exists=isinstance(problem, Unusable),
        valid_submission=False,
        is_lower_better=facts["direction"] == "minimize",
        created_at=datetime.now(UTC),
        submission_path=path or file,
        message=f"{path or file} {problem.problem}.",
        task_version=facts["version"],
        metric=facts["metric"],
    )
