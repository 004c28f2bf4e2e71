"""The directory of known plugins, which is a plain file, and hints on what to install. Standard library only."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from mleredux._core.plugins.discovery import KINDS, Plugin

FILE = Path(__file__).parents[2] / "directory.toml"
_PARTS = (
    "agent artifact audit bridge command competition executor experiment "
    "grader sandbox service store technique testing tracker"
)
ROLES = tuple(_PARTS.split())


@dataclass(frozen=True)
class Listed:
    """An entry of the directory.

    Attributes:
        name: The name of the distribution.
        role: One of `ROLES`.
        summary: One sentence.
        source: The URL of its code.
        install: The requirement for pip: the name, perhaps with extras.
        provides: Names that it registers, by kind (one of `KINDS`).
    """

    name: str
    role: str
    summary: str
    source: str
    install: str
    provides: dict[str, tuple[str, ...]]

    @property
    def installed(self) -> str | None:
        """The installed version; None if it is not installed."""
        return next((item.version for item in metadata.distributions(name=self.name)), None)

    @property
    def command(self) -> str:
        """The command that installs the plugin."""
        return f"pip install {self.install!r}" if "[" in self.install else f"pip install {self.install}"

    def matches(self, words: tuple[str, ...]) -> bool:
        """Return whether each word occurs in the name, role, summary or in a registered name."""
        names = (name for named in self.provides.values() for name in named)
        text = "\n".join((self.name, self.role, self.summary, *names)).lower()
        return all(word.lower() in text for word in words)

    def as_json(self) -> dict[str, Any]:
        """Return the entry in JSON-serializable form."""
        return {
            **{name: getattr(self, name) for name in ("name", "role", "summary", "source", "installed")},
            "install": self.command,
            "provides": {kind: list(names) for kind, names in self.provides.items()},
        }


def read_directory(path: Path) -> list[Listed]:
    """Return the entries of a directory file, by name.

    Raises:
        ValueError: An entry is not valid; the message names it.
    """
    entries = []
    for name, fields in sorted(tomllib.loads(path.read_text(encoding="utf-8")).items()):
        if unknown := sorted(fields.keys() - {"role", "summary", "source", "install", *KINDS}):
            raise ValueError(f"{name} has the unknown key {unknown[0]}.")
        if missing := [key for key in ("role", "summary", "source") if not fields.get(key)]:
            raise ValueError(f"{name} has no {missing[0]}.")
        if fields["role"] not in ROLES:
            raise ValueError(f"{name} has the role {fields['role']!r}; use one of {', '.join(ROLES)}.")
        provides = {kind: tuple(fields[kind]) for kind in KINDS if fields.get(kind)}
        install = fields.get("install", name)
        entries.append(Listed(name, fields["role"], fields["summary"], fields["source"], install, provides))
    return entries


@cache
def directory() -> list[Listed]:
    """Return the directory that came with this version of mleredux."""
    return read_directory(FILE)


def installing(kind: str, name: str) -> str | None:
    """Return a sentence about which package to install for a missing object; None if unknown.

    Args:
        kind: One of `KINDS`.
        name: The name of the missing object.
    """
    lacking = (entry for entry in directory() if name in entry.provides.get(kind, ()) and entry.installed is None)
    return next((f"Install it: `{entry.command}`." for entry in lacking), None)


def suggestion(kind: str, name: str, known: list[str], plugins: list[Plugin]) -> str:
    """Return the hint on a missing object: which package to install, similar names, or plugins that failed.

    Args:
        kind, name: The type and the name of the object.
        known: The names of this type that are registered.
        plugins: All plugins.
    """
    if listed := installing(kind, name):
        return listed
    import difflib

    if near := difflib.get_close_matches(name, known, n=3, cutoff=0.55):
        return f"Did you mean {' or '.join(near)}?"
    failed = [plugin.name for plugin in plugins if plugin.state == "failed" and not plugin.clash]
    broken = f" Plugins that failed to load: {', '.join(failed)} (see `mleredux plugins`)." if failed else ""
    broken = " ".join([broken, *dict.fromkeys(plugin.clash for plugin in plugins if plugin.clash)])
    path = ", or specify the path to your script, notebook or folder" if kind == "agents" else ""
    return f"See `mleredux list {kind}`{path}.{broken}"
