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
from mleredux_techniques._kit import composition, synthetic
from mleredux_techniques._kit.dataset import save
from mleredux_techniques._kit.generation import generated
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
    return found


if __name__ == "__main__":
    with threadpool_limits(1):
        print(json.dumps(digests(5)))
