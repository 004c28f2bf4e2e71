"""The client of a server."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, Unpack

import httpx
from mleredux.models.formats import counted
from pydantic import SecretStr

from mleredux_client import calls
from mleredux_client._async.admin import AsyncProjects, AsyncSecrets, AsyncTokens, AsyncUsers, AsyncWebhooks
from mleredux_client._async.builds import AsyncBuilds
from mleredux_client._async.experiments import AsyncExperiment
from mleredux_client._async.grades import AsyncGrades
from mleredux_client._async.http import AsyncHttp
from mleredux_client._async.offers import AsyncOffers
from mleredux_client._async.pages import AsyncPager
from mleredux_client._async.runs import AsyncRun
from mleredux_client.answers import parse
from mleredux_client.durations import Duration, seconds
from mleredux_client.errors import WaitTimeout
from mleredux_client.models.account import Me
from mleredux_client.pairs import async_sleep
from mleredux_client.retries import RetryPolicy
from mleredux_client.settings import DEFAULT_TIMEOUT, settings
from mleredux_client.version import USER_AGENT

_AT_ONCE = 100


class AsyncClient(AsyncOffers, AsyncGrades, AsyncBuilds):
    """A client for a mleredux server: `await client.run("digits", agent="baseline")`.

    Args:
        url: URL of the server; None: the environment variable MLEREDUX_SERVER.
        token: The API token, which is never displayed; None: the environment variable MLEREDUX_TOKEN.
        timeout: Maximum seconds to wait for data from the server.
        retries: Maximum number of retries if the connection breaks, or the server is busy or unavailable.
        project: Id or name of the project for new runs and other resources; None: the user's own.
        transport: An httpx transport to use instead of network connections.

    Raises:
        UsageError: The URL is missing or invalid.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | SecretStr | None = None,
        *,
        timeout: float = DEFAULT_TIMEOUT,
        retries: int = 5,
        project: str | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        where = settings(url, token)
        self.project = project
        self._http = AsyncHttp(
            where, timeout=timeout, policy=RetryPolicy(retries), user_agent=USER_AGENT, transport=transport
        )

    @property
    def url(self) -> str:
        """URL of the server."""
        return self._http.url

    async def run(
        self,
        task: str,
        agent: str | Path = "baseline",
        *,
        sandbox: str | None = None,
        seed: int = 0,
        time_limit: Duration | None = None,
        limits: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        network: str | None = None,
        grants: Mapping[str, Sequence[str]] | None = None,
        secrets: Iterable[str] = (),
        obfuscated: bool = False,
        verify: bool | None = None,
        context: str | None = None,
        labels: Mapping[str, str] | None = None,
        priority: int = 0,
        preemptible: bool = False,
        project: str | None = None,
        wait: bool = False,
    ) -> AsyncRun:
        """Run an agent on a task.

        Args:
            task: Id of a task, possibly with a variant: `digits`, `spaceship-titanic+fixed`.
            agent: Id of an agent, or `repo:https://…`; or a local folder or script (`./my-agent`), which is uploaded if
                the server does not have it, without files matched by `.gitignore` and `.dockerignore`.
            sandbox: Id of a sandbox; None: the best one that meets the agent's needs.
            seed: The seed that the agent gets.
            time_limit: Time limit of the agent: seconds, text such as "2h", or a `timedelta`.
            limits: Further limits: `cpus`, `memory_mb`, `disk_mb`, `gpus`, `llm_calls`, …
            options: Options of the agent that differ from its defaults.
            network: `none`, `gateway` or `open`; None: the agent's default.
            grants: Additional permissions for the agent, within those that the server allows: `{"variables": [...],
                "hosts": [...], "build_hosts": [...], "images": [...], "llm_fields": [...], "llm_models": [...],
                "tools": [...]}`.
            secrets: Names of your own or the project's secrets that it gets as environment variables (see
                `secrets.set`).
            obfuscated: Whether the agent gets the description without the competition's name and story.
            verify: Whether the final code is executed again to verify the result; None: the server's default.
            context: Additional text for the agent.
            labels: Labels by name, for filtering lists of runs.
            priority: Priority among the caller's own runs, from -100 to 100.
            preemptible: Whether it runs only when no other run can, and is preempted by other runs; it then restarts
                with its full time limit.
            project: Id or name of the project that it belongs to.
            wait: Whether to return only when the run has ended.

        Raises:
            NotFound: There is no such task, agent or sandbox.
            QuotaExceeded: The project's quota does not allow another run.
            Invalid: The request is invalid.
        """
        fields = calls.run_fields(
            sandbox=sandbox,
            time_limit=time_limit,
            limits=limits,
            options=options,
            network=network,
            grants=grants,
            secrets=secrets,
            obfuscated=obfuscated,
            verify=verify,
            context=context,
            labels=labels,
            priority=priority,
            preemptible=preemptible,
            project=project or self.project,
        )
        body = {"task": task, "agent": await self.upload(agent, project=project), "seed": seed, **fields}
        created = AsyncRun._of(self._http, await self._http.json(calls.create("/v1/runs", body)))
        return await created.wait() if wait else created

    async def get_run(self, id: str) -> AsyncRun:
        """Return a run, by id."""
        return AsyncRun._of(self._http, await self._http.json(calls.get(f"/v1/runs/{calls.segment(id)}")))

    def runs(
        self,
        *,
        task: str | None = None,
        agent: str | None = None,
        status: str | Iterable[str] | None = None,
        cause: str | None = None,
        medal: str | None = None,
        verdict: str | None = None,
        project: str | None = None,
        experiment: str | None = None,
        labels: Mapping[str, str] | None = None,
        created_after: datetime | str | None = None,
        created_before: datetime | str | None = None,
        sort: Literal["-created_at", "created_at", "-score", "score"] | None = None,
        page_size: int = 100,
    ) -> AsyncPager[AsyncRun]:
        """Return the runs that the user may see, newest first, fetched lazily.

        Args:
            task: Id of a task.
            agent: Id of an agent.
            status: One status, or several that are accepted.
            cause: Cause of failure.
            medal: `gold`, `silver` or `bronze`.
            verdict: `verified`, `not reproducible`, `not checked`, `score given` or `tainted`.
            project: Id or name of a project.
            experiment: Id of an experiment.
            labels: Labels that must all match.
            created_after: Lower limit of the creation time; a `datetime` without a zone is local.
            created_before: Upper limit of the creation time.
            sort: Order by time or by score; a minus sign means descending.
            page_size: Number of runs per request, at most 500.
        """
        filters = calls.run_filters(
            status=status,
            labels=labels,
            created_after=created_after,
            created_before=created_before,
            task=task,
            agent=agent,
            cause=cause,
            medal=medal,
            verdict=verdict,
            project=project or self.project,
            experiment=experiment,
            sort=sort,
        )
        return AsyncPager(self._http, "/v1/runs", partial(AsyncRun._of, self._http), filters, page_size=page_size)

    async def as_completed(
        self, runs: Iterable[AsyncRun], *, timeout: Duration | None = None
    ) -> AsyncIterator[AsyncRun]:
        """Yield each run as soon as it has ended.

        Args:
            runs: The runs, which are refreshed while waiting.
            timeout: How long to wait for all of them; None: no limit.

        Raises:
            WaitTimeout: It took longer; the runs continue.
        """
        waiting = {run.id: run for run in runs}
        until = None if timeout is None else time.monotonic() + seconds(timeout)
        pause = 0.1
        while waiting:
            ended = [run for run in waiting.values() if run.finished]
            ids = [run_id for run_id, run in waiting.items() if not run.finished]
            for start in range(0, len(ids), _AT_ONCE):
                some = ids[start : start + _AT_ONCE]
                page = await self._http.json(calls.get("/v1/runs", {"id": some, "limit": _AT_ONCE}))
                records = {str(item["id"]): item for item in page["items"]}
                for run_id in some:
                    if run_id in records:
                        waiting[run_id]._update(records[run_id])
                    else:
                        await waiting[run_id].refresh()  # raises if it was deleted
                    if waiting[run_id].finished:
                        ended.append(waiting[run_id])
            for run in sorted(ended, key=lambda run: str(run.ended_at)):
                del waiting[run.id]
                yield run
            if waiting and until is not None and time.monotonic() > until:
                raise WaitTimeout(
                    f"{counted(len(waiting), 'run')} not finished yet.", hint="They continue; wait again."
                )
            if waiting:
                await async_sleep(pause)
                pause = min(pause * 1.4, 3.0)

    async def bulk(
        self,
        action: Literal["cancel", "retry", "delete", "change"],
        runs: Iterable[AsyncRun | str],
        **change: Any,
    ) -> list[dict[str, Any]]:
        """Apply an action to many runs.

        Args:
            action: The action.
            runs: The runs, or their ids.
            change: For the action `change`: `labels`, `notes`, `priority` and `pinned`, as for `Run.update`.

        Returns:
            A record per run with `run`, `ok`, and `message`, the reason if nothing was done.
        """
        ids = [run if isinstance(run, str) else run.id for run in runs]
        results: list[dict[str, Any]] = []
        for start in range(0, len(ids), 500):
            body = {"action": action, "runs": ids[start : start + 500], "change": change or None}
            call = calls.Call("POST", "/v1/runs/bulk", json=calls.known(body), repeatable=action != "retry")
            results += (await self._http.json(call))["results"]
        return results

    async def experiment(
        self,
        tasks: Iterable[str] = (),
        agents: Iterable[str | Path] = ("baseline",),
        *,
        sets: Iterable[str] = (),
        seeds: Iterable[int] = (0,),
        name: str | None = None,
        plan: Mapping[str, Any] | None = None,
        wait: bool = False,
        **settings: Unpack[calls.RunFields],
    ) -> AsyncExperiment:
        """Run every agent on every task with every seed: either all runs are created, or none.

        Args:
            tasks: Ids of tasks.
            agents: Ids of agents, or folders, as for `run`.
            sets: Named sets of further tasks.
            seeds: Seeds, with one run each.
            name: Name of the experiment.
            plan: The fields of a plan file, instead of all other arguments except `name`, `labels`, `priority`,
                `preemptible`, `project` and `secrets`.
            wait: Whether to return only when all runs have ended.
            settings: `sandbox`, `time_limit`, `limits`, `options`, `network`, `grants`, `secrets`, `obfuscated`,
                `verify`, `context`, `labels`, `priority`, `preemptible` and `project`, as for `run`; they apply
                to all runs.
        """
        settings["project"] = project = settings.get("project") or self.project
        fields = calls.run_fields(**settings)
        named = [await self.upload(agent, project=project) for agent in calls.several("agents", agents)]
        matrix: dict[str, Any] = {
            "name": name,
            "tasks": calls.several("tasks", tasks),
            "sets": calls.several("sets", sets),
            "agents": named,
            "seeds": list(seeds),
        }
        if plan is not None:
            fields = {key: fields[key] for key in ("labels", "priority", "preemptible", "project", "secrets")}
            matrix = {"name": name, "plan": plan}
        document = await self._http.json(calls.create("/v1/experiments", {**matrix, **fields}))
        created = AsyncExperiment._of(self._http, document)
        return await created.wait() if wait else created

    async def check(self, plan: Mapping[str, Any]) -> dict[str, Any]:
        """Check a plan, given as the fields of its file: return its runs, its time and cost estimated from past runs,
        and the difference that it can detect."""
        document: dict[str, Any] = await self._http.json(calls.create("/v1/experiments/check", {"plan": plan}))
        return document

    async def get_experiment(self, id: str) -> AsyncExperiment:
        """Return an experiment with its runs, by id."""
        path = f"/v1/experiments/{calls.segment(id)}"
        return AsyncExperiment._of(self._http, await self._http.json(calls.get(path)))

    def experiments(self) -> AsyncPager[AsyncExperiment]:
        """Return the experiments that the user may see, newest first, without their runs."""
        return AsyncPager(self._http, "/v1/experiments", partial(AsyncExperiment._of, self._http))

    async def me(self) -> Me:
        """Return the owner of the token, its permissions, and the usage of its projects."""
        return parse(Me, await self._http.json(calls.get("/v1/me")))

    @property
    def tokens(self) -> AsyncTokens:
        """Tokens: `create`, `list`, `delete`."""
        return AsyncTokens(self._http)

    @property
    def secrets(self) -> AsyncSecrets:
        """Secrets, your own and of projects: `set`, `list`, `delete`."""
        return AsyncSecrets(self._http)

    @property
    def webhooks(self) -> AsyncWebhooks:
        """Webhooks of projects: `create`, `list`, `test`, `deliveries`, `delete`."""
        return AsyncWebhooks(self._http)

    @property
    def users(self) -> AsyncUsers:
        """Users, for administrators: `create`, `list`, `get`, `delete`."""
        return AsyncUsers(self._http)

    @property
    def projects(self) -> AsyncProjects:
        """Projects: `create`, `list`, `get`, `update`, `add_member`, `remove_member`."""
        return AsyncProjects(self._http)

    async def aclose(self) -> None:
        """Close all connections; also done by `async with`."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"AsyncClient({self.url!r}{f', project={self.project!r}' if self.project else ''})"
