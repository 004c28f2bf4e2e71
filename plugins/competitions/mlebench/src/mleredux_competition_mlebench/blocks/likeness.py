"""Detect near-duplicates, so that no copy of a test image, or of other test data, is used for training."""

from __future__ import annotations

import io
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TYPE_CHECKING, Any

from mleredux_competition_mlebench.blocks.extras import require
from mleredux_competition_mlebench.blocks.recipes import Group
from mleredux_competition_mlebench.blocks.tables import texts
from mleredux_competition_mlebench.blocks.trees import Tree

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pandas as pd

    from mleredux_competition_mlebench.blocks.workspace import Workspace

_AT_ONCE = 64
_SIDE = 16
_ALIKE = 0.94


def linked(cells: npt.NDArray[Any], share: float) -> npt.NDArray[np.int64]:
    """Assign numbers to rows; linked rows, which agree in at least a certain share of cells, get the same number.

    Args:
        cells: Shape (rows, places).
    """
    import numpy as np

    group = np.arange(len(cells))
    for row in cells:
        joined = np.unique(group[(cells == row).mean(axis=1) >= share])
        if len(joined) > 1:
            group[np.isin(group, joined)] = joined[0]
    return group


def image_hashes(tree: Tree, names: Sequence[str]) -> npt.NDArray[np.uint8]:
    """Return a coarse hash of each image, nearly equal for copies in other sizes, formats and qualities.

    It is the difference hash: it records which of two horizontal neighbors in a gray grid of 17 by 16 cells is
    brighter. For files that are not images, the bytes are used.

    Returns:
        Zeros and ones, shape (images, 256).

    Raises:
        DataError: Images are missing, or Pillow is not installed.
    """
    import numpy as np

    tree.need(names)
    hashes: dict[str, Any] = {}
    with ThreadPoolExecutor() as pool:
        contents = ((name, content.read()) for name, content in tree.stream(dict.fromkeys(names)))
        while batch := dict(islice(contents, _AT_ONCE)):
            hashes |= zip(batch, pool.map(_hash, batch.values()), strict=True)
    return np.array([hashes[name] for name in names])


def _hash(data: bytes) -> npt.NDArray[np.uint8]:
    import hashlib

    import numpy as np

    image = require("PIL.Image", "images")
    try:
        with image.open(io.BytesIO(data)) as picture:
            picture.draft("L", (8 * _SIDE, 8 * _SIDE))  # JPEG files are decoded no larger than needed
            small = picture.convert("L").resize((_SIDE + 1, _SIDE), image.Resampling.BOX)
    except (OSError, SyntaxError):  # Pillow raises the latter for broken PNG files
        return np.unpackbits(np.frombuffer(hashlib.sha256(data).digest(), dtype=np.uint8))
    cells = np.asarray(small, dtype=np.int64)
    return (cells[:, 1:] > cells[:, :-1]).ravel().astype(np.uint8)


def similar_images(tree: str, pattern: str) -> Group:
    """Group rows whose images look the same.

    Args:
        tree: The raw folder, or the archive that contains it.
        pattern: An image's name in the tree, as a pattern over the row's columns (see `texts`).
    """

    def groups(w: Workspace, rows: pd.DataFrame) -> pd.Series[Any]:
        import pandas as pd

        return pd.Series(linked(image_hashes(w.tree(tree), texts(rows, pattern)), _ALIKE), index=rows.index)

    return groups
