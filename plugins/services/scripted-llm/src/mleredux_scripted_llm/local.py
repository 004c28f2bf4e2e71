"""The server in a thread of this process, for tests."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aiohttp import web
from mleredux.errors import MlereduxError
from mleredux_llm_protocols.routes import client_variables

from mleredux_scripted_llm.scenario import Scenario, load_scenario
from mleredux_scripted_llm.server import RecordedCall, Server

_START_SECONDS = 10


class ScriptedLlm:
    """A scripted language model on a real socket, as long as the `with` block lasts.

    Args:
        scenario: A YAML file, its content as a mapping, or a loaded scenario.
        folder: The folder of inserted files, for a mapping.
        host: Address to listen on.
        port: Port to listen on; 0 chooses a free one.
        key: The only API key that is accepted; None accepts any, or none.

    Attributes:
        url: The server's URL, without `/v1`.
        calls: All calls so far.

    Raises:
        MlereduxError: The scenario is invalid, or the port is in use.
    """

    def __init__(
        self,
        scenario: Path | str | Mapping[str, Any] | Scenario,
        *,
        folder: Path | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        key: str | None = None,
    ) -> None:
        self.scenario = scenario if isinstance(scenario, Scenario) else load_scenario(scenario, folder)
        self.calls: list[RecordedCall] = []
        self.url = ""
        self._place = host, port
        self._key = key
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="scripted-llm", daemon=True)
        self._ready = threading.Event()
        self._failure: OSError | None = None

    @property
    def unmatched(self) -> list[RecordedCall]:
        """Calls that no rule matched."""
        return [call for call in self.calls if call.rule is None]

    @property
    def used(self) -> list[str]:
        """Names of the rules that replied, in order."""
        return [call.rule for call in self.calls if call.rule is not None]

    def environment(self, key: str = "scripted") -> dict[str, str]:
        """Return the environment variables that point common clients to the server."""
        return client_variables(self.url, key)

    def start(self) -> ScriptedLlm:
        """Start listening; the same as entering the `with` block."""
        self._thread.start()
        self._ready.wait(_START_SECONDS)
        if self._failure is not None:
            raise MlereduxError(f"The scripted LLM can't listen on {self._place[0]}:{self._place[1]}: {self._failure}.")
        return self

    def stop(self) -> None:
        """Stop serving."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def __enter__(self) -> ScriptedLlm:
        return self.start()

    def __exit__(self, *_error: object) -> None:
        self.stop()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = Server(self.scenario, self._key, self.calls.append)
        runner = web.AppRunner(server.application(), access_log=None, shutdown_timeout=0.1)
        try:
            self._loop.run_until_complete(runner.setup())
            self._loop.run_until_complete(web.TCPSite(runner, *self._place).start())
            host, port = runner.addresses[0][:2]
            self.url = f"http://{host}:{port}"
        except OSError as error:
            self._failure = error
        else:
            self._ready.set()
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(runner.cleanup())
            self._loop.close()
            self._ready.set()
