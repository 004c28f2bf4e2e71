"""Which files a run has: those of its manifest, or, before there is one, what lies in its folders now."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field

from mleredux.plugin.artifact import Artifact, Manifest
from mleredux.plugin.files import IntakeLimits, media_type, readable_path, walk_files
from pydantic import ValidationError

from mleredux_server.files.access import Cover, Opened, open_inside, read_inside
from mleredux_server.files.names import path_of
from mleredux_server.lookup import SeenRun
from mleredux_server.problems import Problem

MANIFEST = "artifacts.json"
_MAX_MANIFEST = 256 << 20
_LIVE_FOLDERS = (("output", "agent"), ("logs", "mleredux"), ("submissions", "mleredux"))
_LIVE = IntakeLimits()
_MOST_KEPT = 20_000


@dataclass(frozen=True)
class Listing:
    """The files of a run.

    Attributes:
        artifacts: By their paths, in order.
        final: Whether they are those of the manifest, with hashes.
    """

    artifacts: dict[str, Artifact] = field(default_factory=dict)
    final: bool = False


class Manifests:
    """Manifests that were read lately: fetching a thousand files of a run does not read one a thousand times."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[tuple[int, int, int], Listing]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, run: SeenRun) -> Listing | None:
        """The manifest's files; None where there is none yet, or the run goes on and will write another.

        Raises:
            Problem: It is damaged.
        """
        if not run.ended:
            return None
        try:
            file = open_inside(run.path, MANIFEST.encode())
        except (FileNotFoundError, NotADirectoryError):
            return None
        with file:
            stamp = (file.inode, file.size, file.modified)
            with self._lock:
                known = self._known.get(run.id)
                if known is not None and known[0] == stamp:
                    self._known.move_to_end(run.id)
                    return known[1]
            listing = self._read(run, file)
        with self._lock:
            self._known[run.id] = (stamp, listing)
            while len(self._known) > 1 and sum(len(one.artifacts) for _, one in self._known.values()) > _MOST_KEPT:
                self._known.popitem(last=False)
        return listing

    @staticmethod
    def _read(run: SeenRun, file: Opened) -> Listing:
        try:
            if file.size > _MAX_MANIFEST:
                raise ValueError("too large")
            manifest = Manifest.model_validate_json(file.read(0, file.size))
        except (ValueError, ValidationError) as error:
            raise Problem(
                "conflict", f"The manifest of run {run.id} is damaged.", hint="Tell who runs the server."
            ) from error
        return Listing({artifact.path: artifact for artifact in manifest.artifacts}, final=True)


def live(run: SeenRun) -> Listing:
    """What lies in a run's folders now, as far as limits go; without hashes, as it may change."""
    found = {}
    for folder, producer in _LIVE_FOLDERS:
        for one in walk_files(run.path / folder, _LIVE):
            if one.reason is None:
                path = f"{folder}/{readable_path(one.path)}"
                found[path] = Artifact(path=path, media_type=media_type(path), size=one.size, producer=producer)
    return Listing(dict(sorted(found.items())))


def artifact_of(run: SeenRun, manifests: Manifests, path: str, cover: Cover | None) -> tuple[Artifact, Opened]:
    """One file of a run, open, to be read as the cover says.

    Raises:
        Problem: There is none of that path, or it is none that is given out.
    """
    missing = Problem(
        "not-found", f"Run {run.id} has no artifact {path[:200]!r}.", hint="See the list of its artifacts."
    )
    where = path_of(path)
    if where is None:
        raise missing
    listing = manifests.of(run)
    if listing is not None:
        known = listing.artifacts.get(path)
    else:
        folder = path.partition("/")[0]
        producer = dict(_LIVE_FOLDERS).get(folder)
        known = Artifact(path=path, media_type=media_type(path), producer=producer) if producer else None
    if known is None:
        raise missing
    try:
        return known, open_inside(run.path, where, cover)
    except OSError:
        raise missing from None


def read_document(run: SeenRun, name: str, most: int) -> bytes | None:
    """A file of ours that lies in a run's directory; None where there is none.

    Raises:
        Problem: It can't be read.
    """
    try:
        return read_inside(run.path, name, most)
    except OSError as error:
        raise Problem("conflict", f"{name} of run {run.id} can't be read.", hint="Tell who runs the server.") from error
