"""Which secrets a run's agent was given, so that its files can be read before they are masked on disk."""

from __future__ import annotations

import os
import re
import threading
from collections import OrderedDict
from collections.abc import Iterable
from functools import cached_property

from fastapi import Request
from mleredux.errors import MlereduxError
from mleredux.plugin.artifact import FINAL, Run
from mleredux.plugin.files import Mask

from mleredux_server.files.access import Cover
from mleredux_server.files.manifest import MANIFEST
from mleredux_server.lookup import SeenRun
from mleredux_server.service import Service, service_of

_MOST_KEPT = 1000
_SECRET_NAME = re.compile(
    r"(^|_)(api|access|private)?(keys?|tokens?|secrets?|pass(word|wd|phrase)?|credentials?|auth|pat)(_|\d|$)",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"[-+]?[\d.,:_]*")
_PLAIN = re.compile(
    r"[A-Za-z]+([_-][A-Za-z]+)*(\.[\w-]+)?(@\w+)?"  # words, locales
    r"|(/[^:\s]*)(:/[^:\s]*)*"  # paths
    r"|https?://[^@?/\s]+(/[^@?/\s]{0,19})*"  # addresses without credentials
)


class Masks:
    """Masks of the runs that were asked for lately.

    Args:
        service: The service, whose environment is that of its workers.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._known: OrderedDict[str, Mask] = OrderedDict()
        self._lock = threading.Lock()

    def cover(self, run: SeenRun) -> Cover | None:
        """How to read files of a run: those that an agent left or printed, and that are not masked yet.

        A run that was given up ends without being masked, so it is the manifest that tells which files are. One that is
        worked on from elsewhere has no job of ours that goes on.
        """
        mask = self.of(run)
        if not mask:
            return None
        over = run.ended and run.status in FINAL
        return Cover(mask, growing=not over, settled=_settled(run) if over else None)

    def of(self, run: SeenRun) -> Mask:
        """What hides the secrets of a run's agent."""
        with self._lock:
            if run.id in self._known:
                self._known.move_to_end(run.id)
                return self._known[run.id]
        mask = self._make(run)
        with self._lock:
            self._known[run.id] = mask
            while len(self._known) > _MOST_KEPT:
                self._known.popitem(last=False)
        return mask

    def _make(self, run: SeenRun) -> Mask:
        """Of an agent that is installed, exactly what is masked at the end; others would have to be fetched for it."""
        try:
            spec = Run(run.path).spec
            if ":" not in spec.agent:
                return Mask(_values(self._service.catalogue.agent(spec.agent, spec.options).secrets))
        except (MlereduxError, OSError, ValueError):
            pass  # a directory that can't be read, an agent that is no longer installed
        return self._any

    @cached_property
    def _any(self) -> Mask:
        """What hides all that might be a secret of an agent that is not known here."""
        catalogue, found = self._service.catalogue, set[str]()
        for name in catalogue.entries("agents"):
            try:
                found.update(_values(catalogue.agent(name).secrets))
            except MlereduxError:
                continue  # a plugin that does not work gives nothing to agents
        offered = self._service.settings.agent_variables
        found.update(value for name, value in os.environ.items() if _may_be_secret(name, value, name in offered))
        return Mask(found)


def masks_of(request: Request) -> Masks:
    """The masks of the server that a request came to."""
    state = request.app.state
    if not hasattr(state, "masks"):
        state.masks = Masks(service_of(request))
    found: Masks = state.masks
    return found


def _values(names: Iterable[str]) -> set[str]:
    return {os.environ[name] for name in names if name in os.environ}


def _may_be_secret(name: str, value: str, offered: bool) -> bool:
    """Whether a variable is one that an agent may have been given as a secret.

    Args:
        name: Of the variable.
        value: Of the variable.
        offered: Whether agents of users may take it, by whatever name.
    """
    if _NUMBER.fullmatch(value):
        return False
    if _SECRET_NAME.search(name):
        return not (value.startswith("/") and os.access(value, os.F_OK))
    return offered and not _PLAIN.fullmatch(value)


def _settled(run: SeenRun) -> int | None:
    """When the manifest was written, by which all was masked; None where there is none."""
    try:
        return (run.path / MANIFEST).lstat().st_mtime_ns
    except OSError:
        return None
