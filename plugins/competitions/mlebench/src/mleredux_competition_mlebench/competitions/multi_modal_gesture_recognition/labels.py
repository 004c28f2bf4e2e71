"""Remove gesture labels from the MATLAB files of test recordings, which contain them as plain data."""

import gzip
import io
import shutil
import tarfile
import zipfile
import zlib
from typing import IO

from mleredux.errors import DataError

from ...blocks import Tree

VIDEO, LABELS = "Video", "Labels"
_EPOCH = (1980, 1, 1, 0, 0, 0)


def without_labels(tree: Tree, file: IO[bytes]) -> None:
    """Write the recordings (zip files) of a tree as a tar.gz archive, with no labels in their MATLAB files.

    Raises:
        DataError: A recording is damaged, or its MATLAB file is not as expected.
    """
    with (
        gzip.GzipFile(fileobj=file, mode="wb", mtime=0, compresslevel=1, filename="") as packed,
        tarfile.open(fileobj=packed, mode="w|") as archive,
    ):
        for name, content in tree.stream(tree.names(".zip")):
            data = _recording(content.read(), name)
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


def _recording(data: bytes, name: str) -> bytes:
    target = io.BytesIO()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(target, "w") as new:
            for member in old.infolist():
                info = zipfile.ZipInfo(member.filename, _EPOCH)
                info.compress_type = zipfile.ZIP_DEFLATED
                with old.open(member) as source, new.open(info, "w", force_zip64=True) as copy:
                    if member.filename.endswith(".mat"):
                        copy.write(_matlab(source.read(), member.filename))
                    else:
                        shutil.copyfileobj(source, copy, 1 << 20)
    except zipfile.BadZipFile as error:
        raise DataError(f"{name} is damaged: {error}.", hint="Get the raw data again.") from error
    return target.getvalue()


def _matlab(data: bytes, name: str) -> bytes:
    """Return the structure `Video` of a MATLAB file, with an empty field `Labels`."""
    import numpy as np
    from scipy.io import loadmat, savemat
    from scipy.io.matlab import MatReadError

    try:
        video = loadmat(io.BytesIO(data))[VIDEO]
        for place in np.ndindex(video.shape):
            video[place][LABELS] = np.empty((0, 0))
    except (MatReadError, ValueError, LookupError, TypeError, OSError, NotImplementedError, zlib.error) as error:
        raise DataError(
            f"{name} is not a MATLAB file with a structure {VIDEO} that has {LABELS} ({type(error).__name__}).",
            hint="Get the raw data again, or use the task without +fixed.",
        ) from error
    target = io.BytesIO()
    savemat(target, {VIDEO: video}, do_compression=True)
    return target.getvalue()
