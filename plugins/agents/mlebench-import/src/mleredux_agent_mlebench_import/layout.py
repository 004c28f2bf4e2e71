"""A folder in MLE-bench's agent layout: `config.yaml` names agents, each with a Dockerfile, a script and arguments."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from mleredux.errors import MlereduxError

CONFIG = "config.yaml"
_MOST_BYTES = 1 << 20
_HELPERS = {"vars", "defaults", "kwargs_common"}
_KINDS = ("omegaconf", "argparse")
_SECRET = re.compile(r"\$\{\{\s*secrets\.([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*")


@dataclass(frozen=True)
class Entry:
    """One agent of a `config.yaml`.

    Attributes:
        name: Its id in the file: `aide/dev`.
        start: The script, relative to the folder.
        dockerfile: The Dockerfile, relative to the folder.
        kwargs_type: `omegaconf` (`key=value`) or `argparse` (`--key value`).
        kwargs: Arguments of the script.
        env: Variables with plain values.
        secret_env: Variables whose values contain secrets, as text with `${{ secrets.NAME }}`.
        privileged: Whether it requests a privileged container, which is never granted.
    """

    name: str
    start: str
    dockerfile: str
    kwargs_type: str = "omegaconf"
    kwargs: dict[str, Any] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    secret_env: dict[str, str] = field(default_factory=dict)
    privileged: bool = False

    @property
    def secrets(self) -> tuple[str, ...]:
        """Names of the user's variables that it requests."""
        return tuple(dict.fromkeys(name for text in self.secret_env.values() for name in _SECRET.findall(text)))

    def exports(self) -> list[str]:
        """Return shell lines that derive its variables from the variables of the secrets."""
        lines = []
        for name, text in self.secret_env.items():
            if _SECRET.fullmatch(text.strip()) and self.secrets_of(text) == (name,):
                continue  # the variable already exists under this name
            parts = _SECRET.split(text)  # plain, name, plain, name, …
            quoted = [
                f'"${{{part}-}}"' if index % 2 else "'" + part.replace("'", "'\\''") + "'"
                for index, part in enumerate(parts)
                if part
            ]
            lines.append(f"export {name}={''.join(quoted)}")
        return lines

    @staticmethod
    def secrets_of(text: str) -> tuple[str, ...]:
        """Return the names of secrets in a value."""
        return tuple(_SECRET.findall(text))

    def arguments(self, options: dict[str, Any]) -> list[str]:
        """Return the script's arguments as MLE-bench passes them."""
        pairs = [(name, _written(value, self.kwargs_type)) for name, value in options.items()]
        if self.kwargs_type == "argparse":
            return [part for name, value in pairs for part in (f"--{name}", value)]
        return [f"{name}={value}" for name, value in pairs]


def read_folder(folder: Path) -> dict[str, Entry]:
    """Return the agents of a folder, by id.

    Raises:
        MlereduxError: The folder is not in MLE-bench's layout; the message states what is missing.
    """
    import yaml

    path = folder / CONFIG
    if not path.is_file():
        raise _invalid(f"{folder} has no {CONFIG}")
    if path.stat().st_size > _MOST_BYTES:
        raise _invalid(f"{path} is larger than {_MOST_BYTES:,} bytes")
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise _invalid(f"{path} is not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(document, dict):
        raise _invalid(f"{path} contains no mapping of agents")
    entries = {
        name: _entry(folder, name, value)
        for name, value in document.items()
        if isinstance(name, str) and name not in _HELPERS and isinstance(value, dict) and "start" in value
    }
    if not entries:
        raise _invalid(f"{path} defines no agent (an entry with `start` and `dockerfile`)")
    return entries


def _entry(folder: Path, name: str, value: dict[str, Any]) -> Entry:
    where = f"agent {name} in {folder / CONFIG}"
    if not _NAME.fullmatch(name):
        raise _invalid(f"{where} has a name with characters other than letters, digits, `.`, `_`, `-` and `/`")
    kind = value.get("kwargs_type", "omegaconf")
    if kind not in _KINDS:
        raise _invalid(f"{where} has kwargs_type {kind!r}, which is neither {' nor '.join(_KINDS)}")
    variables = {str(key): _plain(item) for key, item in _mapping(value, "env_vars", where).items()}
    if odd := [key for key in variables if not _VARIABLE.fullmatch(key)]:
        raise _invalid(f"{where} sets a variable {odd[0]!r}, which is not a valid name")
    return Entry(
        name=name,
        start=_inside(folder, value.get("start"), "start", where),
        dockerfile=_inside(folder, value.get("dockerfile"), "dockerfile", where),
        kwargs_type=kind,
        kwargs={str(key): item for key, item in _mapping(value, "kwargs", where).items()},
        env={key: text for key, text in variables.items() if not _SECRET.search(text)},
        secret_env={key: text for key, text in variables.items() if _SECRET.search(text)},
        privileged=value.get("privileged") is True,
    )


def _inside(folder: Path, named: Any, key: str, where: str) -> str:
    """Return a file of the folder; paths in MLE-bench start at the parent folder (`aide/start.sh`)."""
    if not isinstance(named, str):
        raise _invalid(f"{where} has no `{key}`")
    parts = PurePosixPath(named).parts
    for tried in (parts[1:], parts):
        path = folder.joinpath(*tried)
        if tried and ".." not in tried and path.is_file() and path.resolve().is_relative_to(folder.resolve()):
            return PurePosixPath(*tried).as_posix()
    raise _invalid(f"{where} refers to {key} {named!r}, which is not in the folder")


def _mapping(value: dict[str, Any], key: str, where: str) -> dict[Any, Any]:
    mapping = value.get(key)
    if mapping is None:
        return {}
    if not isinstance(mapping, dict) or any(isinstance(item, dict | list) for item in mapping.values()):
        raise _invalid(f"{where} has {key} that do not map names to plain values")
    return mapping


def _plain(value: Any) -> str:
    return "" if value is None else str(value)


def _written(value: Any, kind: str) -> str:
    return "null" if value is None and kind == "omegaconf" else str(value)


def _invalid(what: str) -> MlereduxError:
    return MlereduxError(f"{what}.", hint="An MLE-bench agent is a folder with config.yaml, Dockerfile and start.sh.")
