"""Hashes of what each registered technique plants, states and publishes for one seed, in this process.

`python -m technique_documents.digests` prints them; texts are hashed differently in each process (`PYTHONHASHSEED`).
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from mleredux.plugin.task import Task
from mleredux_techniques import mleredux_find_task
from mleredux_techniques._kit.data.dataset import Dataset, save
from mleredux_techniques._kit.data.images import SIDE, THUMBNAIL
from mleredux_techniques._kit.planting import composition, synthetic
from mleredux_techniques._kit.planting.generation import generated
from mleredux_techniques._kit.planting.pictures import drawn
from threadpoolctl import threadpool_limits

from technique_documents import TECHNIQUES


def digests(seed: int) -> dict[str, str]:
    """The hash of a planted instance of each technique that plants: tables, truth, and further public files."""
    task = mleredux_find_task(f"synthetic-public-{seed}", None)
    assert isinstance(task, Task)
    table = synthetic.table(task, np.random.default_rng(seed), 1.0)
    draft = composition.draft(table, np.random.default_rng(seed))
    found = {}
    for name, technique in TECHNIQUES.items():
        if technique.plant is None:
            continue
        rng = np.random.default_rng(seed)
        made = composition.anonymous(
            technique.plant(generated(table, rng) if name in composition.ORDER else draft, rng), rng
        )
        few = replace(made, train=made.train.head(150), test=made.test.head(60))  # predictions of models take long
        parts = [json.dumps(technique.truth(made)), json.dumps(technique.files(few) if technique.files else {})]
        with tempfile.TemporaryDirectory() as folder:
            save(made, Path(folder))
            files = [path.read_bytes() for path in sorted(Path(folder).iterdir())]
        found[name] = hashlib.sha256(b"".join([*files, *(part.encode() for part in parts)])).hexdigest()
    for name in ("cv", "eda", "leakage"):
        made, drawn_files = pictures(name, seed)
        table = made.train.to_csv().encode() + json.dumps(made.planted).encode()
        found[f"pictures of {name}"] = hashlib.sha256(table + b"".join(drawn_files.values())).hexdigest()
    return found


def sketches(rows: int = 240) -> Dataset:
    """Thumbnails of two classes: bright above, or below."""
    import pandas as pd

    rng = np.random.default_rng(0)
    high = rng.random(rows) < 0.5
    where = np.repeat(np.arange(SIDE) < SIDE // 2, SIDE)
    pixels = np.clip(0.4 + 0.15 * (where == high[:, None]) + 0.1 * rng.standard_normal((rows, SIDE**2)), 0, 1)
    table = pd.DataFrame(pixels, columns=list(THUMBNAIL)).assign(label=np.where(high, "yes", "no"))
    cut = round(0.7 * rows)
    return Dataset(
        task="sketches", problem="binary", train=table.iloc[:cut], test=table.iloc[cut:].reset_index(drop=True),
        target="label", targets=("label",), ids=(), features=THUMBNAIL, kinds=dict.fromkeys(THUMBNAIL, "number"),
        metric="accuracy", train_rows=cut, test_rows=rows - cut, thumbnail=THUMBNAIL,
    )  # fmt: skip


def pictures(technique: str, seed: int) -> tuple[Dataset, dict[str, bytes]]:
    """The described pictures that a technique plants for one seed, and their files."""
    return drawn(TECHNIQUES[technique], sketches(), np.random.default_rng(seed))


if __name__ == "__main__":
    with threadpool_limits(1):
        print(json.dumps(digests(5)))
