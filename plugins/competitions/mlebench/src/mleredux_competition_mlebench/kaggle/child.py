"""The process that talks to Kaggle: `python -m …kaggle.child REQUEST`, answers as JSON lines.

The `kaggle` package authenticates on import, prints arbitrary output and may exit; this process confines these side
effects. It exits with its parent, when its standard input is closed.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

from mleredux.plugin.files import redirected

from mleredux_competition_mlebench.kaggle.patience import Refusal

_TIMEOUT = (30.0, 120.0)
"""Seconds to wait for a connection, and for the next bytes."""
_TELL_SECONDS = 0.2
_REQUESTS = "kagglesdk.competitions.types.competition_api_service"
_PAGE = 200
_MOST_PAGES = 5000


def main() -> None:
    """Execute the request in the first argument."""
    parent, answers = os.dup(0), os.fdopen(os.dup(1), "w", buffering=1)
    with open(os.devnull, "r+b") as nowhere:  # noqa: PTH123
        for descriptor in (0, 1, 2):  # exit() closes standard input, which no thread may be waiting for
            os.dup2(nowhere.fileno(), descriptor)
    threading.Thread(target=_end_with_parent, args=(parent,), daemon=True).start()
    request = json.loads(sys.argv[1])
    try:
        answer: dict[str, Any] = {"done": carry_out(request, lambda event: _send(answers, event))}
    except Refusal as refusal:
        answer = {"refused": refusal.kind, "facts": refusal.facts}
    except (Exception, SystemExit) as error:  # the message may contain a signed URL, so only its type is reported
        answer = {"refused": "unforeseen", "facts": {"reason": type(error).__name__}}
    _send(answers, answer)
    answers.flush()
    os._exit(0)  # regardless of threads that the package has started


def _end_with_parent(parent: int) -> None:
    while os.read(parent, 1):
        pass
    os._exit(1)


def _send(answers: IO[str], event: dict[str, Any]) -> None:
    answers.write(json.dumps(event) + "\n")


def carry_out(request: dict[str, Any], send: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Execute a request.

    Args:
        request: `what` is data, access, leaderboard or file; `competition`; `target` for files; `endpoint` instead of
            Kaggle's, or None.
        send: Receives events: bytes done, pauses.

    Raises:
        Refusal: The request can't be fulfilled.
    """
    _be_patient_only_so_long()
    _follow_only_what_is_public()
    from mleredux_competition_mlebench.kaggle.patience import Patience
    from mleredux_competition_mlebench.kaggle.transfer import Download

    def sleep(seconds: float) -> None:
        send({"waiting": seconds})
        time.sleep(seconds)

    patience = Patience(sleep=sleep)
    if request["what"] == "file":
        import requests

        def request_file() -> requests.Response:
            response = requests.get(request["address"], stream=True, headers={"Accept-Encoding": "identity"})
            response.raise_for_status()
            return response

        ask: Callable[[], requests.Response] = request_file
    else:
        kaggle = _Kaggle(request["endpoint"], patience)
        if request["what"] == "leaderboard":
            return {"scores": kaggle.scores(request["competition"], public=request["public"])}
        if request["what"] == "access":
            patience.ask(lambda: kaggle.archive(request["competition"])).close()
            return {}
        ask = lambda: kaggle.archive(request["competition"])  # noqa: E731
    download = Download(ask, Path(request["target"]), patience, _ProgressReporter(send).report)
    download.run()
    return {"md5": download.md5}


class _ProgressReporter:
    """Reports progress in bytes, but not for every block."""

    def __init__(self, send: Callable[[dict[str, Any]], None]) -> None:
        self._send, self._last = send, 0.0

    def report(self, done: int, total: int | None) -> None:
        now = time.monotonic()
        if done == total or now - self._last >= _TELL_SECONDS:
            self._last = now
            self._send({"bytes": done, "total": total})


def _be_patient_only_so_long() -> None:
    """Add timeouts to the requests of the kaggle package, which sets none."""
    from requests.adapters import HTTPAdapter

    send = HTTPAdapter.send

    def send_with_limit(self: HTTPAdapter, request: Any, *args: Any, **settings: Any) -> Any:
        if not args and settings.get("timeout") is None:
            settings["timeout"] = _TIMEOUT
        return send(self, request, *args, **settings)

    HTTPAdapter.send = send_with_limit  # type: ignore[method-assign]


def _follow_only_what_is_public() -> None:
    """Check redirects of each session in this process, including those of the kaggle package."""
    from requests import Response
    from requests.sessions import SessionRedirectMixin

    target_of = SessionRedirectMixin.get_redirect_target

    def checked_target(self: SessionRedirectMixin, resp: Response) -> str | None:
        location: str | None = target_of(self, resp)
        if location is None:
            return None
        try:
            return redirected(str(resp.url), location)[0]
        except PermissionError as error:
            raise Refusal("redirected", reason=str(error)) from error

    SessionRedirectMixin.get_redirect_target = checked_target  # type: ignore[method-assign]


class _Kaggle:
    """The signed-in client of the kaggle package."""

    def __init__(self, endpoint: str | None, patience: Any) -> None:
        self._patience = patience
        try:
            if endpoint:
                _point_at(endpoint)
            self._api: Any = import_module("kaggle").api
        except ImportError as error:
            raise Refusal("not-importable", reason=str(error)) from error
        except (Exception, SystemExit) as error:
            raise Refusal("not-importable", reason=type(error).__name__) from error
        if not getattr(self._api, "_authenticated", False):  # its import swallows the reason
            patience.ask(self._sign_in)

    def _sign_in(self) -> None:
        try:
            self._api.authenticate()
        except SystemExit as error:
            token, source = import_module("kagglesdk.kaggle_env").get_access_token_from_env()
            if token:
                raise Refusal("token-refused", source=source) from error
            raise Refusal("no-credentials") from error

    def archive(self, competition: str) -> Any:
        """Return the archive of all files as a streaming response."""
        request = import_module(_REQUESTS).ApiDownloadDataFilesRequest()
        request.competition_name = competition
        client = self._api.build_kaggle_client()
        client.__enter__()  # closing the client would close the response too
        response = client.competitions.competition_api_client.download_data_files(request)
        kind = response.headers.get("Content-Type", "")
        if kind.startswith(("text/html", "application/json")):
            raise Refusal("no-archive", type=kind.partition(";")[0])
        return response

    def scores(self, competition: str, *, public: bool) -> list[float]:
        """Return all scores of the final leaderboard (or the public one), best first."""
        request = import_module(_REQUESTS).ApiGetLeaderboardRequest()
        request.competition_name = competition
        request.override_public = public
        request.page_size = _PAGE
        scores: list[float] = []
        tokens = {""}
        with self._api.build_kaggle_client() as client:
            for _ in range(_MOST_PAGES):
                page = self._patience.ask(
                    lambda: client.competitions.competition_api_client.get_leaderboard(request), what="leaderboard"
                )
                scores += [float(entry.score) for entry in page.submissions if _is_number(entry.score)]
                if page.next_page_token in tokens:
                    break
                tokens.add(page.next_page_token)
                request.page_token = page.next_page_token
        if not scores:
            raise Refusal("no-scores")
        return scores


def _point_at(endpoint: str) -> None:
    """Direct the client to another server: it has a table of servers, but no setting for one."""
    kaggle_env = import_module("kagglesdk.kaggle_env")
    table = getattr(kaggle_env, "_env_to_endpoint", None)
    production = getattr(getattr(kaggle_env, "KaggleEnv", None), "PROD", None)
    if not isinstance(table, dict) or production not in table:
        raise Refusal("other-version", version=version("kaggle"), reason="it can't be directed to another server")
    table[production] = endpoint.rstrip("/")


def _is_number(text: str | None) -> bool:
    try:
        return float(text or "nan") == float(text or "nan")
    except ValueError:
        return False


if __name__ == "__main__":
    main()
