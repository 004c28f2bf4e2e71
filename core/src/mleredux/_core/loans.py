"""Secrets that a service provides to one run: visible to its thread, not in the process's environment."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

GIT_TOKEN = "GIT_TOKEN"
"""The name of the secret for fetching private repositories of agents, which no agent gets."""
_SECRETS: ContextVar[Mapping[str, str]] = ContextVar("mleredux_secrets")
_VALUES: ContextVar[frozenset[str]] = ContextVar("mleredux_secrets_values")


@contextmanager
def provide_secrets(secrets: Mapping[str, str], earlier: Iterable[str] = ()) -> Iterator[None]:
    """Add secrets to the caller's variables, in this thread.

    Args:
        secrets: Values by name.
        earlier: Values that the run had before, which are no longer provided; they are masked like the others.
    """
    names, values = _SECRETS.set(dict(secrets)), _VALUES.set(frozenset([*secrets.values(), *earlier]))
    try:
        yield
    finally:
        _SECRETS.reset(names)
        _VALUES.reset(values)


def provided_secrets() -> Mapping[str, str]:
    """Return the secrets provided to this thread."""
    return _SECRETS.get({})


def masked_values() -> frozenset[str]:
    """Return all values to mask: secrets provided to this thread, and those that its run had before."""
    return _VALUES.get(frozenset())


def caller_variables() -> Mapping[str, str]:
    """Return the environment of the process with the secrets provided to this thread."""
    return {**os.environ, **provided_secrets()}
