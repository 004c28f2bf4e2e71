"""The gateway of a run: the proxy in a dedicated thread, on a Unix socket and on the loopback interface."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from functools import partial
from pathlib import Path

from aiohttp import web
from mleredux.errors import SandboxError, one_line
from mleredux.models.events import GatewayUse, Warned
from mleredux.models.formats import counted
from mleredux.plugin.agent import Agent
from mleredux.plugin.artifact import LlmUse, Run
from mleredux.plugin.files import write_atomically
from mleredux.plugin.task import installation_salt
from mleredux_llm_protocols import Tokens
from mleredux_llm_protocols.routes import client_variables

from mleredux_gateway.bounds import bounded
from mleredux_gateway.config import load_config, replaying, run_variables
from mleredux_gateway.demand import Received
from mleredux_gateway.meter import Meter
from mleredux_gateway.prices import Prices
from mleredux_gateway.proxy import Proxy
from mleredux_gateway.record import CALLS, FOLDER, Record, read_calls
from mleredux_gateway.replay import Replay
from mleredux_gateway.secrets import Mask, run_token
from mleredux_gateway.trajectory import write_trajectory

PLACE = "gateway.json"
_START_SECONDS = 20
_STOP_SECONDS = 2
_SHOWN_DIFFERENCES = 20
_PAUSE, _SHARE = 2.0, 30
"""Minimum pause between two writes of an active run's trajectory: in seconds, and as a multiple of how long the last
write took."""


def open_gateway(run: Run, agent: Agent, socket: Path) -> RunGateway:
    """Open the gateway of a run; calls of earlier attempts count.

    Raises:
        SandboxError: There is no upstream, or the sockets cannot be opened.
    """
    token = run_token(installation_salt(), run.id)
    replay = open_replay(run, Mask([token]))
    variables = run_variables()
    config = load_config(variables) if replay is None else replaying(replay.source, replay.models, variables)
    config = config.granting(run.spec.grants.llm_fields, run.spec.grants.llm_models)
    mask = Mask([token, *(upstream.key for upstream in config.upstreams)])
    folder = run.path / FOLDER
    record = Record(folder, mask.text)
    prices = Prices(config.prices, config.price_table)
    meter = Meter(run.spec.limits, lambda budget: _record_exhausted(run, budget), lambda sentence: _warn(run, sentence))
    for call in record.calls:
        meter.restore(call)
    for begun in record.interrupted:
        lost = {
            "completion_tokens": 0,
            "cost_usd": None,
            **begun,
            "status": None,
            "failed": True,
            "error": "The program was terminated during this call.",
            "cached_tokens": 0,
            "estimated": True,
        }
        record.end(lost, None, None)
        meter.restore(lost)
    received = Received()
    for call in read_calls(folder / CALLS):
        if call.get("kind") == "responses" and not call.get("refused"):
            tokens = Tokens(call["prompt_tokens"], completion=call["completion_tokens"])
            received.add(call.get("request"), call.get("response"), tokens)
    diverged = partial(_warn, run)
    proxy = Proxy(run.id, token, config, prices, meter, record, mask, received, replay, diverged)
    gateway = RunGateway(run, agent, token, proxy, meter, replay)
    gateway.start(socket)
    return gateway


def open_replay(run: Run, mask: Mask) -> Replay | None:
    """Open the record of the run that this one replays; return None if it does not replay a run.

    Raises:
        SandboxError: The record does not exist.
    """
    if run.spec.replay is None:
        return None
    source = run.path.parent / run.spec.replay
    if not (source / FOLDER / CALLS).is_file():
        hint = "Choose a run that called a language model, or omit --replay."
        raise SandboxError(f"Run {source.name} has no recorded calls to language models.", hint=hint)
    renamed = [(str(source), str(run.path)), (source.name, run.id)]
    return Replay(source.name, read_calls(source / FOLDER / CALLS), renamed, mask.text)


class RunGateway:
    """Implementation of `mleredux.plugin.gateway.Gateway`."""

    def __init__(
        self, run: Run, agent: Agent, token: str, proxy: Proxy, meter: Meter, replay: Replay | None = None
    ) -> None:
        self.url = ""
        self.secrets: tuple[str, ...] = (token,)
        self._run, self._agent, self._meter, self._proxy = run, agent, meter, proxy
        self._replay = replay
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._failure: OSError | None = None
        self._thread: threading.Thread | None = None
        self._servers: list[asyncio.Server] = []

    def environment(self, url: str) -> dict[str, str]:
        """Return the variables from which common clients determine the gateway's URL."""
        (token,) = self.secrets
        return {
            **client_variables(url, token),
            "LITELLM_PROXY_API_BASE": f"{url}/v1",
            "LITELLM_PROXY_API_KEY": token,
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # otherwise it waits for an unreachable URL
        }

    def start(self, socket: Path) -> None:
        """Listen, on the same port as before if the run is resumed.

        Raises:
            SandboxError: A socket cannot be opened.
        """
        self._thread = threading.Thread(target=self._serve, args=(socket,), name=f"gateway-{self._run.id}", daemon=True)
        self._thread.start()
        self._ready.wait(_START_SECONDS)
        if self._failure is not None or not self.url:
            raise SandboxError(f"The gateway can't listen on {socket}: {self._failure}.")

    def paused(self) -> float:
        """Return the number of seconds for which the providers have been down."""
        return self._meter.paused()

    def close(self) -> LlmUse:
        """Stop serving, and create the trajectory from the record."""
        if self._thread is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        try:
            write_trajectory(self._run, self._agent)
        except Exception as error:  # usage must be reported whatever a record contains
            message = f"Could not create a trajectory from the record of calls: {one_line(error)}"
            self._run.emit(Warned(plugin="gateway", message=message))
        use = self._meter.use()
        if self._replay is None:
            return use
        differences = self._replay.differences
        if remaining := self._replay.left:
            calls = counted(remaining, "call")
            differences.append(f"Not repeated: {calls} of {self._replay.source}.")
            _warn(self._run, differences[-1])
        shown = tuple(differences[:_SHOWN_DIFFERENCES])
        update = {"replay": self._replay.source, "repeated": self._replay.repeated, "differences": shown}
        return use.model_copy(update=update)

    def _serve(self, socket: Path) -> None:
        asyncio.set_event_loop(self._loop)
        runner = web.AppRunner(self._proxy.application(), access_log=None, shutdown_timeout=_STOP_SECONDS)
        try:
            self._loop.run_until_complete(self._listen(runner, socket))
        except OSError as error:
            self._failure = error
        else:
            self._ready.set()
            following = self._loop.create_task(self._follow())
            self._loop.run_forever()
            following.cancel()
        finally:
            for server in self._servers:
                server.close()
            self._loop.run_until_complete(runner.cleanup())
            # The tasks of recently closed connections have not been notified yet.
            pending = asyncio.all_tasks(self._loop)
            for task in pending:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*pending, return_exceptions=True))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.run_until_complete(
                self._loop.shutdown_default_executor()
            )  # the last trajectory is written later
            self._loop.close()
            self._ready.set()

    async def _follow(self) -> None:
        """Write the trajectory of the calls so far, for viewers of the run."""
        calls, size_before, pause = self._run.path / FOLDER / CALLS, 0, _PAUSE
        while True:
            await asyncio.sleep(pause)
            size = calls.stat().st_size if calls.exists() else 0
            if size != size_before:
                size_before, began = size, time.monotonic()
                with contextlib.suppress(Exception):  # `close` reports what cannot be converted
                    await asyncio.to_thread(write_trajectory, self._run, self._agent)
                pause = max(_PAUSE, _SHARE * (time.monotonic() - began))

    async def _listen(self, runner: web.AppRunner, socket: Path) -> None:
        await runner.setup()
        assert runner.server is not None
        protocols = bounded(runner.server)
        socket.parent.mkdir(parents=True, exist_ok=True)
        self._servers.append(await self._loop.create_unix_server(protocols, str(socket)))
        socket.chmod(0o666)  # the agent has another user id in a container; access is by token
        note = self._run.path / FOLDER / PLACE
        earlier = 0
        with contextlib.suppress(OSError, ValueError, KeyError):
            # An agent that was started before a kill knows only the old address.
            earlier = int(json.loads(note.read_text())["port"])
            self._servers.append(await self._loop.create_server(protocols, "127.0.0.1", earlier))
        if len(self._servers) < 2:
            self._servers.append(await self._loop.create_server(protocols, "127.0.0.1", 0))
        port = self._servers[1].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        if port != earlier:
            write_atomically(note, json.dumps({"port": port}) + "\n")


def _warn(run: Run, sentence: str) -> None:
    run.emit(Warned(plugin="gateway", message=sentence))


def _record_exhausted(run: Run, budget: str) -> None:
    run.emit(GatewayUse(status="exhausted", budget=budget, limit=getattr(run.spec.limits, budget)))
