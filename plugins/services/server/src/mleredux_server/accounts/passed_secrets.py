"""The values of secrets passed to runs, stored encrypted so that they are masked even after they are replaced or
deleted."""

from __future__ import annotations

from collections.abc import Iterable

from mleredux.plugin.files import write_atomically

from mleredux_server.accounts.vault import KEY_VARIABLE
from mleredux_server.protocol.problems import Problem
from mleredux_server.service import Service

FOLDER = "lent"
"""Folder in the state folder, with a file for each run that received secrets."""


def keep_values(service: Service, run_id: str, values: Iterable[str]) -> set[str]:
    """Record values before they are passed to a run; return those that were passed to it earlier.

    Values encrypted with another key stay recorded, but are not returned.

    Raises:
        OSError: The file can't be written; in that case, the values must not be passed on.
    """
    lines, known = _lines(service, run_id), set[str]()
    for line in lines:
        try:
            known.add(service.vault.open(_place(run_id), line))
        except (Problem, ValueError):
            continue
    if fresh := sorted(set(values) - known):
        _write(service, run_id, [*lines, *(service.vault.lock(_place(run_id), value) for value in fresh)])
    return known


def values_of(service: Service, run_id: str) -> set[str]:
    """Return all values that were passed to a run.

    Raises:
        Problem: The values are unknown: one was encrypted with another key, or the file can't be read.
    """
    try:
        return {service.vault.open(_place(run_id), line) for line in _lines(service, run_id)}
    except (Problem, OSError, ValueError):
        detail = f"The files of run {run_id} can't be shown, because the secrets to mask in them can't be read."
        hint = f"Start the server with the former {KEY_VARIABLE} or salt file, or delete the run."
        raise Problem("conflict", detail, hint=hint) from None


def renew_values(service: Service) -> int:
    """Encrypt all values with the first key; return the number of runs that received any.

    Raises:
        Problem: A value was encrypted with an unknown key.
    """
    folder = service.settings.state_dir / FOLDER
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    renewed = {name: [service.vault.renew(_place(name), line) for line in _lines(service, name)] for name in names}
    for name, lines in renewed.items():
        _write(service, name, lines)
    return len(renewed)


def forget_values(service: Service, run_id: str) -> None:
    """Remove the record of a deleted run."""
    (service.settings.state_dir / FOLDER / run_id).unlink(missing_ok=True)


def _lines(service: Service, run_id: str) -> list[str]:
    try:
        return (service.settings.state_dir / FOLDER / run_id).read_text("ascii", "replace").splitlines()
    except FileNotFoundError:
        return []


def _write(service: Service, run_id: str, lines: Iterable[str]) -> None:
    path = service.settings.state_dir / FOLDER / run_id
    path.parent.mkdir(mode=0o700, exist_ok=True)
    write_atomically(path, "".join(f"{line}\n" for line in lines), mode=0o600)


def _place(run_id: str) -> str:
    return f"lent:{run_id}"
