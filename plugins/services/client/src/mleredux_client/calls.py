"""What is asked of a service, as values: which path, which body. Nothing here sends anything."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from mleredux_client.durations import Duration, seconds
from mleredux_client.errors import UnsafePath, UsageError

T = TypeVar("T")
_TIMES = ("time_limit", "notice", "grace")
"""Limits that are durations."""


@dataclass(frozen=True)
class Call:
    """One request.

    Attributes:
        method: Of HTTP.
        path: Beneath the service's URL, quoted.
        params: Of the query; lists are said several times.
        json: The body, where there is one.
        form: Fields of a multipart body, beside the file.
        file: A file to upload, opened again for each try.
        headers: Further ones.
        repeatable: Whether it may be sent again when nobody knows what became of it.
        patience: Seconds that the answer may take beyond the usual.
    """

    method: str
    path: str
    params: Mapping[str, Any] = field(default_factory=dict)
    json: Any = None
    form: Mapping[str, str] | None = None
    file: Path | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = True
    patience: float = 0.0


def get(path: str, params: Mapping[str, Any] | None = None) -> Call:
    """Read something; parameters without a value are left out."""
    return Call("GET", path, known(params or {}))


def create(path: str, body: Mapping[str, Any]) -> Call:
    """Make something: carries a key by which the service knows a repeat, so that it is safe."""
    return Call("POST", path, json=known(body), headers={"Idempotency-Key": uuid.uuid4().hex})


def upload(
    path: str, file: Path | str, form: Mapping[str, Any], *, creates: bool = True, prefer_wait: float = 0
) -> Call:
    """Submit a file.

    Raises:
        UsageError: There is no such file.
    """
    source = Path(file)
    if not source.is_file():
        raise UsageError(f"There is no file {source}.", hint="Give the path of a file.")
    key = uuid.uuid4().hex
    headers = {"Content-Type": f"multipart/form-data; boundary={key}"}  # a repeat has the very same body
    if creates:
        headers["Idempotency-Key"] = key
    if prefer_wait >= 1:
        headers["Prefer"] = f"wait={int(prefer_wait)}"
    return Call("POST", path, form=known(form), file=source, headers=headers, patience=prefer_wait)


def act(path: str) -> Call:
    """Ask for something that is the same when asked twice."""
    return Call("POST", path)


def delete(path: str) -> Call:
    """Delete something."""
    return Call("DELETE", path)


def run_fields(
    *,
    sandbox: str | None,
    time_limit: Duration | None,
    limits: Mapping[str, Any] | None,
    options: Mapping[str, Any] | None,
    network: str | None,
    grants: Mapping[str, Sequence[str]] | None,
    secrets: Iterable[str],
    obfuscated: bool,
    verify: bool | None,
    context: str | None,
    labels: Mapping[str, str] | None,
    priority: int,
    preemptible: bool,
    project: str | None,
) -> dict[str, Any]:
    """What runs and experiments are asked alike."""
    wanted = {**(limits or {}), **({"time_limit": time_limit} if time_limit is not None else {})}
    wanted |= {name: seconds(wanted[name]) for name in _TIMES if wanted.get(name) is not None}
    return {
        "sandbox": sandbox,
        "limits": wanted or None,
        "options": dict(options) if options else None,
        "network": network,
        "grants": {name: several(name, names) for name, names in grants.items()} if grants else None,
        "secrets": several("secrets", secrets) or None,
        "obfuscated": obfuscated or None,
        "verify": verify,
        "context": context,
        "labels": {name: str(value) for name, value in labels.items()} if labels else None,
        "priority": priority or None,
        "preemptible": preemptible or None,
        "project": project,
    }


def run_filters(
    *,
    status: str | Iterable[str] | None,
    labels: Mapping[str, str] | None,
    created_after: datetime | str | None,
    created_before: datetime | str | None,
    **equal: str | None,
) -> dict[str, Any]:
    """Query parameters of a list of runs."""
    return known(
        {
            "status": [status] if isinstance(status, str) else list(status) if status is not None else None,
            "label": [f"{name}:{value}" for name, value in labels.items()] if labels else None,
            "created_after": _moment(created_after),
            "created_before": _moment(created_before),
            **equal,
        }
    )


def _moment(value: datetime | str | None) -> str | None:
    """ISO 8601 in UTC; a time without a zone is the caller's own."""
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value


def known(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Those with a value."""
    return {name: value for name, value in fields.items() if value is not None}


def segment(name: str) -> str:
    """A name as one segment of a path: it can't lead elsewhere.

    Raises:
        UsageError: No resource can have this name.
    """
    if not isinstance(name, str) or name in ("", ".", ".."):
        raise UsageError(f"{name!r} is not a valid name.")
    return quote(name, safe="@+")


def file_path(name: str) -> str:
    """The path of a run's file as that of a URL.

    Raises:
        UnsafePath: It has segments that URLs don't keep.
    """
    if any(part in ("", ".", "..") for part in name.split("/")):
        raise UnsafePath(f"{name!r} is not an artifact's path.", hint="Use the paths in the list of artifacts.")
    return quote(name, safe="/")


def several(what: str, names: Iterable[T]) -> list[T]:
    """Names as a list.

    Raises:
        UsageError: One text was given, which would be taken for its letters.
    """
    if isinstance(names, str):
        raise UsageError(f"`{what}` takes several names, not one text.", hint=f"Write {what}=[{names!r}].")
    return list(names)
