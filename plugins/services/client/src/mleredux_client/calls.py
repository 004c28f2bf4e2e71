"""Requests to a server as values, with path and body. Nothing here sends anything."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypedDict, TypeVar, Unpack
from urllib.parse import quote

from mleredux_client.durations import Duration, seconds
from mleredux_client.errors import UnsafePath, UsageError

T = TypeVar("T")
_TIMES = ("time_limit", "notice", "grace")
_SENT = ("sandbox", "network", "verify", "context", "project")
"""Fields that are sent even if they are false or empty."""
"""Limits that are durations."""


@dataclass(frozen=True)
class Call:
    """One request.

    Attributes:
        method: The HTTP method.
        path: Quoted path, relative to the server's URL.
        params: Query parameters; those with lists are repeated.
        json: The JSON body, if there is one.
        form: Fields of a multipart body, besides the file.
        file: A file to upload, reopened for each try.
        headers: Additional headers.
        repeatable: Whether it may be sent again if its outcome is unknown.
        patience: Additional seconds that the response may take.
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
    """Return a request that reads a resource; parameters without a value are omitted."""
    return Call("GET", path, known(params or {}))


def create(path: str, body: Mapping[str, Any]) -> Call:
    """Return a request that creates a resource, with an idempotency key that makes repeats safe."""
    return Call("POST", path, json=known(body), headers={"Idempotency-Key": uuid.uuid4().hex})


def upload(
    path: str, file: Path | str, form: Mapping[str, Any], *, creates: bool = True, prefer_wait: float = 0
) -> Call:
    """Return a request that uploads a file.

    Raises:
        UsageError: The file does not exist.
    """
    source = Path(file)
    if not source.is_file():
        raise UsageError(f"There is no file {source}.", hint="Specify the path of a file.")
    key = uuid.uuid4().hex
    headers = {"Content-Type": f"multipart/form-data; boundary={key}"}  # a repeat has the same body
    if creates:
        headers["Idempotency-Key"] = key
    if prefer_wait >= 1:
        headers["Prefer"] = f"wait={int(prefer_wait)}"
    return Call("POST", path, form=known(form), file=source, headers=headers, patience=prefer_wait)


def act(path: str) -> Call:
    """Return an idempotent request."""
    return Call("POST", path)


def delete(path: str) -> Call:
    """Return a request that deletes a resource."""
    return Call("DELETE", path)


class RunFields(TypedDict, total=False):
    """The arguments that requests for runs and experiments have in common; `Client.run` describes them."""

    sandbox: str | None
    time_limit: Duration | None
    limits: Mapping[str, Any] | None
    options: Mapping[str, Any] | None
    network: str | None
    grants: Mapping[str, Sequence[str]] | None
    secrets: Iterable[str]
    obfuscated: bool
    verify: bool | None
    context: str | None
    labels: Mapping[str, str] | None
    priority: int
    preemptible: bool
    project: str | None


def run_fields(**fields: Unpack[RunFields]) -> dict[str, Any]:
    """Return the fields that requests for runs and experiments have in common.

    Raises:
        TypeError: An argument has an unknown name.
    """
    if unknown := sorted(fields.keys() - RunFields.__annotations__.keys()):
        raise TypeError(f"{unknown[0]!r} is not an argument of a run or an experiment.")
    values: dict[str, Any] = dict.fromkeys(RunFields.__annotations__) | {**fields}
    limits = {**(values["limits"] or {}), **known({"time_limit": values.pop("time_limit")})}
    limits |= {name: seconds(limits[name]) for name in _TIMES if limits.get(name) is not None}
    grants = {name: several(name, names) for name, names in (values["grants"] or {}).items()}
    labels = {name: str(value) for name, value in (values["labels"] or {}).items()}
    values |= {"limits": limits, "grants": grants, "labels": labels, "options": dict(values["options"] or {})}
    values["secrets"] = several("secrets", values["secrets"] or ())
    return {name: value if name in _SENT else value or None for name, value in values.items()}


def run_filters(
    *,
    status: str | Iterable[str] | None,
    labels: Mapping[str, str] | None,
    created_after: datetime | str | None,
    created_before: datetime | str | None,
    **equal: str | None,
) -> dict[str, Any]:
    """Return the query parameters for a list of runs."""
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
    """Convert a time to ISO 8601 in UTC; a time without a zone is local."""
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value


def known(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}


def segment(name: str) -> str:
    """Quote a name as a single segment of a path, so that it can't change the path.

    Raises:
        UsageError: No resource can have this name.
    """
    if not isinstance(name, str) or name in ("", ".", ".."):
        raise UsageError(f"{name!r} is not a valid name.")
    return quote(name, safe="@+")


def file_path(name: str) -> str:
    """Quote the path of a run's file for a URL.

    Raises:
        UnsafePath: It has segments that URLs don't preserve.
    """
    if any(part in ("", ".", "..") for part in name.split("/")):
        raise UnsafePath(f"{name!r} is not the path of an artifact.", hint="Use the paths in the list of artifacts.")
    return quote(name, safe="/")


def several(what: str, names: Iterable[T]) -> list[T]:
    """Return names as a list.

    Raises:
        UsageError: The value is a single string, which would be split into letters.
    """
    if isinstance(names, str):
        raise UsageError(f"`{what}` takes a list of names, not one string.", hint=f"Write {what}=[{names!r}].")
    return list(names)
