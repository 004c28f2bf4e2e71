"""Pictures that look the same on both sides are found, whatever their encoding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest


def photograph(rng: np.random.Generator) -> Any:
    """Structure at all scales, as photographs have it."""
    from PIL import Image

    layers = [
        np.asarray(Image.fromarray(rng.integers(256, size=(4 << scale, 4 << scale), dtype=np.uint8)).resize((256, 256)))
        / 2**scale
        for scale in range(6)
    ]
    return Image.fromarray((sum(layers) / 2).clip(0, 255).astype(np.uint8))


@pytest.mark.parametrize("change", ["png", "quality-50", "half-size", "brighter"])
def test_pictures_that_look_the_same_are_found(change: str, toy: Any) -> None:
    from PIL import Image

    rng = np.random.default_rng(9)
    for side in ("train", "test"):
        (toy.public / side).mkdir(parents=True)
    for place in range(20):
        picture = photograph(rng)
        picture.save(toy.public / "test" / f"{toy.test['id'][place]}.jpg", quality=90)
        copy = picture if place < 10 else photograph(rng)
        if change == "half-size":
            copy = copy.resize((128, 128))
        if change == "brighter":
            copy = Image.fromarray((np.asarray(copy) * 1.1).clip(0, 255).astype(np.uint8))
        ending, quality = ("png", 75) if change == "png" else ("jpg", 50 if change == "quality-50" else 75)
        copy.save(toy.public / "train" / f"{toy.train['id'][place]}.{ending}", quality=quality)
    report = toy.audit()
    found = next(one for one in report.findings if one.kind == "duplicates")
    assert "looking the same" in found.message
    assert found.figures["copies"] == 10
