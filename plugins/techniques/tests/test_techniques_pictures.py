"""Planted pictures and prose: drawn from a seed, told by their files, and asked about end to end."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mleredux_techniques._kit.data.images import THUMBNAIL, describe
from mleredux_techniques._kit.planting.generation import generated, reworded
from mleredux_techniques._kit.planting.pictures import WAYS
from mleredux_techniques.kit import Dataset, load
from PIL import Image
from technique_documents import TECHNIQUES
from technique_documents.digests import pictures, sketches


def test_a_leak_of_pictures_shows_in_the_training_files_alone() -> None:
    seen = set()
    for seed in range(8):
        made, files = pictures("leakage", seed)
        assert len(files) == len(made.train) + len(made.test)
        assert all(Image.open(io.BytesIO(content)).format == "PNG" for content in files.values())
        row = made.train.iloc[0]
        described = describe(files[f"train/{row[made.ids[0]]:.0f}.png"])
        assert described["image width"] == row["image width"] and described[THUMBNAIL[9]] == row[THUMBNAIL[9]]
        leaking = [name for leak in made.planted["leaks"] for name in leak["columns"]]
        for name in (name for name in leaking if name.startswith("image ")):
            seen.add(name.rsplit(" ", 1)[-1] if "pixel" not in name else "pixel")
            told = [_told(frame[name], frame[made.target]) for frame in (made.train, made.test)]
            assert told[0] > 0.6 and told[0] - told[1] > 0.2, (seed, name, told)
    assert seen == {"metadata", "width", "pixel"} and len(seen) == len(WAYS)


def _told(values: Any, target: Any) -> float:
    """Correlation of the best value or threshold of a column with a target of two classes."""
    codes = np.unique(values.astype(str), return_inverse=True)[1] if values.dtype == object else values.to_numpy()
    classes = np.unique(target.astype(str), return_inverse=True)[1]
    return float(max(abs(np.corrcoef(codes >= one, classes)[0, 1]) for one in np.unique(codes)[1:]))


def test_copies_of_prose_lack_some_words() -> None:
    rng = np.random.default_rng(0)
    words = [str(rng.integers(1000)) for _ in range(40)]
    texts = [" ".join(rng.permutation(words)) for _ in range(120)]
    base = sketches()
    features = {"features": ("text",), "kinds": {"text": "text"}, "thumbnail": ()}
    table = Dataset(**{**vars(base), **features, "train": base.train.head(120).assign(text=texts)})
    made = generated(table, rng, rows=60)
    copies = reworded(made, made.train, rng)["text"].str.split()
    kept = [len(copy) / len(text.split()) for copy, text in zip(copies, made.train["text"], strict=True)]
    assert not set(made.train["text"]) & set(texts)
    assert 0.85 < np.mean(kept) < 0.99 and set(words) >= {word for text in made.train["text"] for word in text.split()}


@pytest.mark.shared
def test_planted_pictures_are_asked_about_end_to_end(bench: Any, shared: Path) -> None:
    name = "aerial-cactus-identification"
    bench.prepare(name, source=shared / "golden" / name / "raw.zip")
    found = bench.prepare(f"eda+planted-public-1@{name}")
    made, public = load(found.private), found.public
    assert made.thumbnail and made.planted["gaps"]["eda"] >= 4
    for part, frame in (("train", made.train), ("test", made.test)):
        assert {path.stem for path in (public / part).iterdir()} >= {f"{number:.0f}" for number in frame[made.ids[0]]}
    question = json.loads((public / "question.json").read_bytes())
    assert question["train"] == "described_train.csv"
    text = bench.task(f"eda+planted-public-1@{name}").describe()
    assert "were drawn for this question" in text and "the tables and images" in text
    from mleredux._core.stages.grade import grade
    from technique_documents import perfect

    answer = found.private.parent / "answer.json"
    answer.write_text(perfect("eda", found.private).model_dump_json(), encoding="utf-8")
    task = bench.task(f"eda+planted-public-1@{name}")
    assert grade(task, answer, found.private, bench.catalogue).score == pytest.approx(1.0, abs=0.02)
    assert TECHNIQUES["eda"].images
