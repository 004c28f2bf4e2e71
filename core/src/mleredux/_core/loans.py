"""Secrets that a service lends to one run: seen by the thread that executes it, not by the process's environment."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

GIT_TOKEN = "GIT_TOKEN"
"""The name of the secret for fetching private repositories of agents, which no agent gets."""
_LENT: ContextVar[Mapping[str, str]] = ContextVar("mleredux_lent")


@contextmanager
def lend(secrets: Mapping[str, str]) -> Iterator[None]:
    """Add secrets to the caller's variables, in this thread.

    Args:
        secrets: Values by name.
    """
    token = _LENT.set(dict(secrets))
    try:
        yield
    finally:
        _LENT.reset(token)


def lent() -> Mapping[str, str]:
    """The secrets that are lent to this thread."""
    return _LENT.get({})


def caller_variables() -> Mapping[str, str]:
    """The environment of the process, and the secrets that are lent to this thread."""
    return {**os.environ, **lent()}
