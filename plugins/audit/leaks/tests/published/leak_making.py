"""Building blocks of synthetic data."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

Rng = np.random.Generator
Shape = Callable[["Folders", Rng, bool], None]


class Folders:
    """A prepared directory to be."""

    def __init__(self, root: Path) -> None:
        self.public, self.private = root / "public", root / "private"

    def put(self, name: str, content: Any, side: str = "public") -> None:
        path = getattr(self, side) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, pd.DataFrame):
            content.to_csv(path, index=False)
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def answers(self, frame: pd.DataFrame, name: str = "test.csv") -> None:
        self.put(name, frame, "private")


def names(rng: Rng, count: int, length: int = 9) -> list[str]:
    """Ids of hexadecimal digits."""
    return ["".join(row) for row in rng.choice(list("0123456789abcdef"), (count, length))]


VOCABULARY = names(np.random.default_rng(1), 4000, 6)


def words(rng: Rng, count: int) -> str:
    return " ".join([VOCABULARY[place] for place in rng.integers(len(VOCABULARY), size=count)])


def npy(array: np.ndarray) -> bytes:
    kept = io.BytesIO()
    np.save(kept, array)
    return kept.getvalue()


def picture(rng: Rng, side: int = 64) -> Any:
    from PIL import Image

    return Image.fromarray(rng.integers(256, size=(7, 7), dtype=np.uint8)).resize((side, side))


def jpeg(image: Any, quality: int) -> bytes:
    kept = io.BytesIO()
    image.save(kept, "JPEG", quality=quality)
    return kept.getvalue()
