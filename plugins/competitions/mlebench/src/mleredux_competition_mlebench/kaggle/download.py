"""Parent side of Kaggle downloads: start the child process, report progress, and convert refusals to messages."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mleredux.errors import DataError
from mleredux.plugin.files import write_atomically
from mleredux.plugin.task import DamagedArchive, md5, tell_progress, unpack

from mleredux_competition_mlebench.kaggle.patience import Refusal, as_error

if TYPE_CHECKING:
    from mleredux_competition_mlebench.kaggle import KaggleData, KaggleLeaderboard

ENDPOINT_VARIABLE = "MLEREDUX_KAGGLE_ENDPOINT"
"""Address of a server that implements Kaggle's protocol, instead of Kaggle's own."""
_DOWNLOADS = 2


def fetch_data(data: KaggleData, raw: Path) -> None:
    """Download a competition's archive, check it, and unpack it into an empty folder.

    Raises:
        DataError: The archive is not available, or was damaged twice.
    """
    folder = raw.parent / "download"
    archive = folder / f"{data.competition}.zip"
    try:
        folder.mkdir(exist_ok=True)
        for attempt in range(1, _DOWNLOADS + 1):
            md5_reported = None
            if not archive.exists():
                md5_reported = _call({"what": "data", "competition": data.competition, "target": str(archive)})["md5"]
            try:
                _check(data, archive, md5_reported)
                unpack(archive, raw)
                break
            except DamagedArchive as error:
                _empty(raw)
                archive.unlink()
                if attempt == _DOWNLOADS:
                    raise Refusal("damaged", reason=error.message.rstrip(".")) from error
                tell_progress("the archive was damaged; downloading it again", lasting=True)
        for name, address in data.others:
            _call({"what": "file", "address": address, "competition": data.competition, "target": str(raw / name)})
    except Refusal as refusal:
        raise as_error(refusal, data.competition) from refusal
    except OSError as error:
        raise DataError(
            f"Cannot write the data of {data.competition} to {raw.parent}: {error.strerror or error}.",
            hint="Free disk space there, or choose another folder with --data-dir.",
        ) from error


def check_access(data: KaggleData) -> None:
    """Ask whether a competition's archive may be downloaded.

    Raises:
        DataError: The archive may not be downloaded.
    """
    try:
        _call({"what": "access", "competition": data.competition})
    except Refusal as refusal:
        raise as_error(refusal, data.competition) from refusal


def fetch_leaderboard(board: KaggleLeaderboard, path: Path) -> None:
    """Write a fresh leaderboard: `rank,score`, best first, no names.

    Raises:
        DataError: The leaderboard is not available.
    """
    try:
        answer = _call({"what": "leaderboard", "competition": board.competition, "public": board.public})
    except Refusal as refusal:
        raise as_error(refusal, board.competition) from refusal
    lines = [f"{rank},{score!r}\n" for rank, score in enumerate(answer["scores"], 1)]
    write_atomically(path, "rank,score\n" + "".join(lines))


def _check(data: KaggleData, archive: Path, reported: str | None) -> None:
    """Compare the archive with its known checksums.

    An archive that Kaggle has repacked since is still used, with a warning: the prepared files have their own published
        checksums.

    Raises:
        DamagedArchive: The archive differs from the file sent. (Damaged members are detected during unpacking.)
    """
    tell_progress("checking the archive")
    computed = md5(archive)
    if computed == data.md5:
        return
    if reported is not None and computed != reported:
        raise DamagedArchive(f"its MD5 is {computed}, but Kaggle reported {reported}")
    if not zipfile.is_zipfile(archive):
        raise DamagedArchive("it is not a complete zip archive")
    if data.md5 is not None:
        tell_progress(
            f"Kaggle's archive has MD5 {computed} instead of {data.md5}: it may have been repacked; "
            "the prepared files will be checked",
            lasting=True,
        )


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def _call(request: dict[str, Any]) -> dict[str, Any]:
    """Execute a request in a separate process, which alone has the credentials.

    Raises:
        Refusal: The request failed.
    """
    client = importlib.util.find_spec("kaggle")
    if client is None or client.origin is None:  # without an origin, it is just a folder with that name
        raise Refusal("not-installed")
    request = {"endpoint": os.environ.get(ENDPOINT_VARIABLE) or None, **request}
    child = subprocess.Popen(
        [sys.executable, "-m", "mleredux_competition_mlebench.kaggle.child", json.dumps(request)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,  # Ctrl-C is handled here; the child exits when its standard input is closed
        env={**os.environ, "PYTHONSAFEPATH": "1"},
    )
    with child:
        try:
            tell_progress("asking Kaggle")
            assert child.stdout is not None
            for line in child.stdout:
                event = json.loads(line)
                if "done" in event:
                    done: dict[str, Any] = event["done"]
                    return done
                if "refused" in event:
                    raise Refusal(event["refused"], **event["facts"])
                if "waiting" in event:
                    tell_progress(f"waiting {event['waiting']:.0f} s before trying again")
                else:
                    tell_progress("downloading", event["bytes"], event["total"])
        finally:
            child.kill()
    raise Refusal("unforeseen", reason=f"its process ended with code {child.returncode}")
