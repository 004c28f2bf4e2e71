"""The secrets that a run's agent received, to mask them in files that are read before they are masked on disk."""

from __future__ import annotations

import os
import re
import threading
from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property

from fastapi import Request
from mleredux.errors import MlereduxError
from mleredux.plugin.artifact import FINAL, Run
from mleredux.plugin.files import Mask
from mleredux.plugin.host import secret_values

from mleredux_server.accounts.passed_secrets import values_of
from mleredux_server.accounts.secrets import secrets_of
from mleredux_server.database.tables import RunRow
from mleredux_server.files.access import Cover
from mleredux_server.files.manifest import MANIFEST
from mleredux_server.runs.lookup import SeenRun
from mleredux_server.service import Service

_MOST_KEPT = 5000
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


@dataclass(frozen=True)
class Known:
    """A run's mask, and the secrets that it covers: those of the server, and those that a user passes to the run.

    Attributes:
        secrets: None if the run's request names no secrets.
    """

    mask: Mask
    values: set[str]
    secrets: set[str] | None


class Masks:
    """A cache of the masks of recently requested runs.

    Args:
        service: The service; its environment is that of its workers.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._known: OrderedDict[str, Known] = OrderedDict()
        self._lock = threading.Lock()

    def cover(self, run: SeenRun) -> Cover | None:
        """Return the way to read files of a run that an agent wrote or printed and that are not masked yet.

        A run that was given up ends unmasked, so the manifest determines which files are masked. Runs created by other
        programs have no active job here.
        """
        mask = self.of(run)
        if not mask:
            return None
        over = run.ended and run.status in FINAL
        return Cover(mask, growing=not over, settled=_settled(run) if over else None)

    def of(self, run: SeenRun) -> Mask:
        """Return the mask for the secrets of a run's agent.

        Raises:
            Problem: The secrets passed to it can't be read, so its files must not be shown.
        """
        with self._lock:
            known = self._known.get(run.id)
            if known is not None:
                self._known.move_to_end(run.id)
                if known.secrets is None:
                    return known.mask
        values = known.values if known is not None else self._values(run)
        with self._service.database.reading() as session:
            row = session.get(RunRow, run.id)
            named = row is None or bool(row.request.get("secrets"))
            secrets = set(secrets_of(self._service, row, session).values()) if row is not None else set()
        secrets |= values_of(self._service, run.id) if named else set()
        before = (known.secrets or set[str]()) if known is not None else set[str]()
        if known is None or not secrets <= before:  # the value of a secret may change before the run starts
            secrets |= before
            known = Known(Mask(values | secrets), values, secrets if named else None)
        with self._lock:
            self._known[run.id] = known
            while len(self._known) > _MOST_KEPT:
                self._known.popitem(last=False)
        return known.mask

    def _values(self, run: SeenRun) -> set[str]:
        """Return the exact values that are masked at the end, for an installed agent; other agents would have to be
        fetched first."""
        try:
            spec = Run(run.path).spec
            known, catalogue = secret_values(spec, self._service.catalogue), self._service.catalogue
            return known if spec.agent in catalogue.entries("agents") else known | self._any
        except (MlereduxError, OSError, ValueError):  # an unreadable directory, an agent that is not installed anymore
            return self._any

    @cached_property
    def _any(self) -> set[str]:
        """Return all values that may be secrets of an agent that is not installed here."""
        catalogue, values = self._service.catalogue, set[str]()
        for name in catalogue.entries("agents"):
            try:
                values.update(os.environ[other] for other in catalogue.agent(name).secrets if other in os.environ)
            except MlereduxError:
                continue  # a broken plugin passes nothing to agents
        offered = self._service.settings.agent_variables
        values.update(value for name, value in os.environ.items() if _may_be_secret(name, value, name in offered))
        return values


def masks_of(request: Request) -> Masks:
    """Return the masks of the application that handles a request."""
    masks: Masks = request.app.state.masks
    return masks


def _may_be_secret(name: str, value: str, offered: bool) -> bool:
    """Return whether an agent may have received a variable as a secret.

    Args:
        name: Name of the variable.
        value: Value of the variable.
        offered: Whether users' agents may use it, under any name.
    """
    if _NUMBER.fullmatch(value):
        return False
    if _SECRET_NAME.search(name):
        return not (value.startswith("/") and os.access(value, os.F_OK))
    return offered and not _PLAIN.fullmatch(value)


def _settled(run: SeenRun) -> int | None:
    """Return the time at which the manifest was written, by when all files were masked; None if there is none."""
    try:
        return (run.path / MANIFEST).lstat().st_mtime_ns
    except OSError:
        return None
