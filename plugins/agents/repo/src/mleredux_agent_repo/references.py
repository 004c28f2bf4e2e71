"""Parse `repo:…` references: the source, its commit and subfolder, and whether it is allowed."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from mleredux.errors import MlereduxError
from mleredux.plugin.agent import split_place, written_place

from mleredux_agent_repo.scripts import SUFFIXES, is_script

SCHEME = "repo:"
HOSTS_VARIABLE = "MLEREDUX_AGENT_HOSTS"
"""Variable with hosts that agents may be fetched from, separated by commas; `*` allows all public hosts."""
PATHS_VARIABLE = "MLEREDUX_AGENT_PATHS"
"""Variable with folders on this machine that agents may come from, in the format of PATH; if unset, all folders."""
DEFAULT_HOSTS = ("github.com", "gitlab.com", "codeberg.org", "bitbucket.org", "huggingface.co")
_SCP = re.compile(r"^(?P<user>[\w.-]+)@(?P<host>[\w.-]+):(?P<path>[^/].*)$")
_URL_SCHEMES = ("https", "ssh", "git", "http")
_REF = re.compile(r"^[A-Za-z0-9][\w./+-]*$")


@dataclass(frozen=True)
class Reference:
    """The location of an agent's source.

    Attributes:
        url: The URL for git; None for a folder on this machine.
        path: The script, folder or repository on this machine; None for a URL.
        ref: Branch, tag or commit; None: the default branch.
        subdir: The agent's folder or script in the source; `.` for the whole source.
    """

    url: str | None
    path: Path | None
    ref: str | None
    subdir: PurePosixPath

    @property
    def place(self) -> str:
        """The URL or the path."""
        return self.url or str(self.path)

    def pinned(self, commit: str) -> str:
        """Return the reference of exactly this commit."""
        tail = "" if self.subdir == PurePosixPath() else f"#{self.subdir}"
        place = written_place(self.path) if self.path else self.place
        return f"{SCHEME}{place}@{commit}{tail}"


def parse(reference: str) -> Reference:
    """Read `repo:PLACE[@REF][#SUBDIR]`.

    Raises:
        MlereduxError: The reference is malformed, contains a password, or names a host or path that is not allowed.
    """
    text = reference.removeprefix(SCHEME)
    place, _, folder = text.partition("#")
    if not place:
        raise MlereduxError(f"{reference!r} has no repository.", hint="Write repo:URL_OR_PATH[@REF][#FOLDER].")
    scheme = urlsplit(place).scheme if "://" in place else ""
    if scheme == "file":
        text, scheme = text.removeprefix("file://"), ""
    elif scheme:
        start = place.index("/", place.index("://") + 3) if "/" in place.partition("://")[2] else len(place)
        url, ref = _split(place, start)
        check_url(url)
        return Reference(url, None, checked(ref), _subdir(folder))
    if match := _SCP.match(place):
        url, ref = _split(place, match.start("path"))
        _check_host(match["host"], url)
        return Reference(url, None, checked(ref), _subdir(folder))
    place, ref, folder = split_place(text)
    whole = Path(place).expanduser().resolve()
    _check_path(whole)
    return Reference(None, whole, checked(ref), _subdir(folder))


def _subdir(folder: str) -> PurePosixPath:
    subdir = PurePosixPath(folder or ".")
    if subdir.is_absolute() or ".." in subdir.parts:
        raise MlereduxError(f"The folder {folder!r} is outside the repository.", hint="Choose one inside it.")
    return subdir


def _split(place: str, start: int) -> tuple[str, str | None]:
    """Split a place from its ref: the ref may contain slashes, but the path before it can't contain `@`."""
    path, at, ref = place[start:].partition("@")
    return place[:start] + path, ref if at else None


def checked(ref: str | None) -> str | None:
    if ref is not None and (not _REF.match(ref) or ".." in ref):
        raise MlereduxError(
            f"{ref!r} is not a branch, tag or commit.", hint="Specify one after `@`, like @main or @v1.2."
        )
    return ref


def check_url(url: str) -> None:
    """Check whether a repository may be fetched from a URL.

    Raises:
        MlereduxError: The scheme or host is not allowed, or the URL contains credentials.
    """
    parts = urlsplit(url)
    scheme = parts.scheme
    if scheme not in _URL_SCHEMES:
        raise MlereduxError(
            f"Repositories can't be fetched with {scheme}://.", hint=f"Use {', '.join(_URL_SCHEMES)} or a path."
        )
    if parts.password or (parts.username and scheme != "ssh"):
        raise MlereduxError(
            "The repository's address contains credentials, which would be stored in the run.",
            hint="Leave them to git's credential helper.",
        )
    host = parts.hostname or ""
    if scheme in ("http", "git") and host not in named_hosts():
        raise MlereduxError(
            f"{scheme}:// does not protect the repository from being changed in transit.",
            hint=f"Use https, or add {host or 'the host'} to {HOSTS_VARIABLE}.",
        )
    _check_host(host, url)


def named_hosts() -> tuple[str, ...]:
    """Return the hosts that this machine's administrator has set."""
    return tuple(name.strip().lower() for name in os.environ.get(HOSTS_VARIABLE, "").split(",") if name.strip())


def _check_host(host: str, url: str) -> None:
    allowed = named_hosts() or DEFAULT_HOSTS
    if "*" not in allowed and host.lower() not in allowed:
        raise MlereduxError(
            f"Agents may not be fetched from {host or url}; allowed hosts: {', '.join(allowed)}.",
            hint=f"The administrator of this machine can allow more in {HOSTS_VARIABLE}.",
        )


def unnamed_host(url: str) -> str | None:
    """Return the host of a URL if it is allowed only because all public hosts are."""
    scp = _SCP.match(url)
    host = (scp["host"] if scp else urlsplit(url).hostname or "").lower()
    return None if host in (*named_hosts(), *DEFAULT_HOSTS) else host


def is_allowed(path: Path) -> bool:
    """Return whether agents may come from a path on this machine."""
    allowed = [Path(name).resolve() for name in os.environ.get(PATHS_VARIABLE, "").split(os.pathsep) if name]
    return not allowed or any(path.is_relative_to(folder) for folder in allowed)


def _check_path(path: Path) -> None:
    if not is_allowed(path):
        raise MlereduxError(
            f"Agents may not be fetched from {path}.",
            hint=f"The administrator of this machine can allow its folder in {PATHS_VARIABLE}.",
        )
    if not path.is_dir() and not is_script(path):
        hint = f"Specify a script ({', '.join(SUFFIXES)}, or beginning with `#!…`), a folder or a repository."
        raise MlereduxError(f"{path} is not a folder or a script.", hint=hint)
