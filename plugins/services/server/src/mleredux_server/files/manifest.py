"""The files of a run: those of its manifest or, before it exists, the current contents of its folders."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections import OrderedDict
from dataclasses import dataclass, field

from mleredux.models import Artifact, Manifest
from mleredux.models.base import parse
from mleredux.plugin.files import IntakeLimits, media_type, path_of_readable, readable_path, walk_files

from mleredux_server.files.access import Cover, Opened
from mleredux_server.protocol.problems import Problem
from mleredux_server.runs.lookup import SeenRun

MANIFEST = "artifacts.json"
_MAX_BYTES = 256 << 20
_LIVE_FOLDERS = (("output", "agent"), ("logs", "mleredux"), ("submissions", "mleredux"))
_LIVE = IntakeLimits()
_MOST_KEPT = 20_000
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Listing:
    """The files of a run.

    Attributes:
        artifacts: In order of their paths.
        final: Whether they are from the manifest, with hashes.
    """

    artifacts: dict[str, Artifact] = field(default_factory=dict)
    final: bool = False


class Manifests:
    """A cache of manifests, so that fetching a thousand files of a run does not read its manifest a thousand times."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[tuple[int, int, int], Listing]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, run: SeenRun) -> Listing | None:
        """Return the manifest's files; None if it does not exist yet, or the run is active and will replace it.

        Raises:
            Problem: The manifest is damaged.
        """
        if not run.ended:
            return None
        try:
            file = run.open(MANIFEST.encode())
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise _damaged(f"The manifest of run {run.id} is damaged.") from error
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
            while len(self._known) > 1 and sum(len(kept.artifacts) for _, kept in self._known.values()) > _MOST_KEPT:
                self._known.popitem(last=False)
        return listing

    @staticmethod
    def _read(run: SeenRun, file: Opened) -> Listing:
        try:
            if file.size > _MAX_BYTES:
                raise ValueError("too large")
            manifest = Manifest.model_validate(parse(file.read(0, file.size)))
        except ValueError as error:
            raise _damaged(f"The manifest of run {run.id} is damaged.") from error
        artifacts = {artifact.path: artifact for artifact in manifest.artifacts}
        for path in (path for path in artifacts if "/" not in path and artifacts[path].sha256):
            with contextlib.suppress(OSError), run.open(path.encode()) as shown:
                artifacts[path] = artifacts[path].model_copy(update={"sha256": _digest(shown)})
        return Listing(artifacts, final=True)


def _digest(file: Opened) -> str | None:
    """Return the hash of a document of a run; None if it is so large that it must be damaged."""
    digest = hashlib.sha256()
    if file.size > _MAX_BYTES:
        return None
    for place in range(0, file.size, _BLOCK):
        digest.update(file.read(place, _BLOCK))
    return digest.hexdigest()


def _damaged(message: str) -> Problem:
    return Problem("conflict", message, hint="Contact the server administrator.")


def live(run: SeenRun) -> Listing:
    """List the current files of a run's folders, up to the limits, without hashes, since they may change."""
    artifacts = {}
    for folder, producer in _LIVE_FOLDERS:
        for file in walk_files(run.path / folder, _LIVE):
            if file.reason is None:
                path = f"{folder}/{readable_path(file.path)}"
                artifacts[path] = Artifact(path=path, media_type=media_type(path), size=file.size, producer=producer)
    return Listing(dict(sorted(artifacts.items())))


def artifact_of(run: SeenRun, manifests: Manifests, path: str, cover: Cover | None) -> tuple[Artifact, Opened]:
    """Open one file of a run, read as `cover` requires.

    Raises:
        Problem: There is no file with that path, or it is not public.
    """
    missing = Problem(
        "not-found", f"Run {run.id} has no artifact {path[:200]!r}.", hint="See the list of its artifacts."
    )
    where = path_of_readable(path)
    if where is None:
        raise missing
    if (listing := manifests.of(run)) is not None:
        known = listing.artifacts.get(path)
    else:
        folder = path.partition("/")[0]
        producer = dict(_LIVE_FOLDERS).get(folder)
        known = Artifact(path=path, media_type=media_type(path), producer=producer) if producer else None
    if known is None:
        raise missing
    try:
        return known, run.open(where, cover)
    except OSError:
        raise missing from None


def read_document(run: SeenRun, name: str, most: int) -> bytes | None:
    """Return a trusted file in a run's directory; None if it does not exist.

    Raises:
        Problem: It can't be read.
    """
    try:
        with run.open(name.encode()) as file:
            if file.size > most:
                raise OSError(f"{name} is larger than {most:,} bytes")
            return file.read(0, file.size)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _damaged(f"{name} of run {run.id} can't be read.") from error
