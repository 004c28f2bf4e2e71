"""Retries with exponential backoff: for throttling, server errors, broken connections."""

from __future__ import annotations

import re
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, TypeVar

import requests
import urllib3
from mleredux.errors import DataError

SITE = "https://www.kaggle.com"
_AGAIN = "Run the same command again to resume the download."


class Refusal(Exception):
    """The reason for a failure, as plain data that a child process can report.

    Args:
        kind: A key of `_SENTENCES`.
        facts: The message's values; no secrets.
    """

    def __init__(self, kind: str, **facts: Any) -> None:
        super().__init__(kind)
        self.kind, self.facts = kind, facts


_SENTENCES = tomllib.loads(Path(__file__).with_name("sentences.toml").read_text(encoding="utf-8"))


def as_error(refusal: Refusal, competition: str) -> DataError:
    """Return the refusal as a `DataError`."""
    texts = _SENTENCES[refusal.kind]
    facts = {"competition": competition, "site": SITE, "page": f"{SITE}/c/{competition}", **refusal.facts}
    return DataError(texts["problem"].format_map(facts), hint=texts["remedy"].format_map(facts))


Result = TypeVar("Result")
TROUBLE = (requests.RequestException, urllib3.exceptions.HTTPError, ConnectionError, TimeoutError)
_TRIES_TO_CONNECT = 4
_REFUSALS = {401: "unauthorized", 403: "forbidden", 404: "not-found", 416: "no-archive"}
_WHY = re.compile(r'"message":\s*"[^"]')


@dataclass(frozen=True)
class Patience:
    """The retry policy.

    Attributes:
        tries: Number of consecutive failures before giving up.
        first: Seconds of the first pause; each subsequent one is twice as long.
        longest: Seconds of the longest backoff pause.
        longest_requested: Maximum number of seconds that a server may request; beyond that, give up with a message.
        sleep: Called to wait, with the reason.
    """

    tries: int = 6
    first: float = 1.0
    longest: float = 60.0
    longest_requested: float = 900.0
    sleep: Callable[[float], None] = time.sleep

    def pause(self, failures: int, requested: float | None = None) -> None:
        """Wait after a number of consecutive failures.

        Raises:
            Refusal: The server requests too long a pause.
        """
        if requested is not None and requested > self.longest_requested:
            raise Refusal("wait-too-long", minutes=round(requested / 60))
        self.sleep(requested if requested is not None else min(self.first * 2 ** (failures - 1), self.longest))

    def ask(self, question: Callable[[], Result], *, what: str = "data") -> Result:
        """Return the response to a request, with retries.

        Args:
            question: Raises `requests.HTTPError` for statuses of 400 and above.
            what: Name of the requested item, for the message of a 404.

        Raises:
            Refusal: The request was refused, or all tries failed.
        """
        failures = 0
        while True:
            try:
                return question()
            except TROUBLE as error:
                failures += 1
                response = getattr(error, "response", None)
                seconds = self._judge(error, response, failures, what)
            self.pause(failures, seconds)

    def _judge(
        self, error: BaseException, response: requests.Response | None, failures: int, what: str
    ) -> float | None:
        """Return the requested seconds to wait; None to use the backoff.

        Raises:
            Refusal: A retry would be useless.
        """
        last = failures >= self.tries
        status = 0 if response is None else response.status_code
        if response is None or status < 400:
            if failures >= min(self.tries, _TRIES_TO_CONNECT):
                raise Refusal("unreachable", reason=type(error).__name__) from error
            return None
        # storage rejects expired URLs with 403, and so do gateways, without Kaggle's message: retry
        passing = status == 403 and (response.history or not _WHY.search(response.text))
        if status in _REFUSALS and not passing:
            raise Refusal(_REFUSALS[status], what=what, type="an empty file") from error
        if status == 429:
            if last:
                raise Refusal("throttled", tries=failures) from error
            return retry_after(response)
        if status >= 500 or status == 408 or passing:
            if last:
                raise Refusal("server-error", status=status, tries=failures) from error
            return retry_after(response)
        raise Refusal("bad-status", status=status) from error


def retry_after(response: requests.Response) -> float | None:
    """Return the seconds that a response requests to wait, by RFC 9110 section 10.2.3: seconds or a date."""
    header = response.headers.get("Retry-After")
    if header is None:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        date = parsedate_to_datetime(header)
    except (TypeError, ValueError):
        return None
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, (date - datetime.now(UTC)).total_seconds())
