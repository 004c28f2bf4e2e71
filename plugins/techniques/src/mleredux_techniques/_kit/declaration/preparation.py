"""Prepare a technique task from the prepared files of its base: the public files, and the truth."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from mleredux.plugin.task import Task

from mleredux_techniques._kit.data.dataset import Dataset, Instance, save
from mleredux_techniques._kit.data.discovery import DESCRIBED, Source, discover
from mleredux_techniques._kit.data.splits import sampled
from mleredux_techniques._kit.data.tables import ENDINGS, MAX_ROWS
from mleredux_techniques._kit.data.threads import one_thread
from mleredux_techniques._kit.planting.competition import TEST, TRAIN, write_tables
from mleredux_techniques._kit.planting.composition import ATTEMPTS, DECIDED, ORDER, anonymous, kept, refuse_undecided
from mleredux_techniques._kit.planting.pictures import Drawn, drawn, kept_sketches, without_descriptions
from mleredux_techniques._kit.planting.seeds import Seed

if TYPE_CHECKING:
    from mleredux_techniques._kit.declaration.spec import TechniqueSpec

QUESTION_FILE = "question.json"
TRUTH_FILE = "truth.json"
"""The name of the file with the truth, in the private folder."""
_COPIED_BYTES = 1 << 20


def prepare(raw: Path, public: Path, private: Path, *, base: Task, technique: TechniqueSpec, seed: Seed | None) -> None:
    """Write the public and private files of a technique task.

    Args:
        raw: The base's prepared folder, with `public` and `private`.
        public: Receives the base's public files and `question.json`.
        private: Receives the truth, and the (sampled) data with the labels of the test rows.
        base: The competition; the planted competition if the task is a planted instance.
        technique: The technique.
        seed: Seed of the planted instance; None for unchanged data.

    Raises:
        NotApplicable: The question does not apply to the data; the message states the reason.
    """
    own: Dataset | None = None  # drawn for this technique, so that the base's tables are not shared
    pictures: dict[str, bytes] = {}
    with one_thread():  # small matrices, on which threads would wait for one another
        dataset = kept(raw)
        source = Source(TRAIN, TEST)
        if dataset is None:
            dataset, source = discover(base, raw, images=technique.images)
        else:
            dataset = replace(dataset, task=base.id)
            sketches = kept_sketches(raw) if technique.images else None
            if seed is not None and sketches is not None:
                sketches, source = replace(sketches, task=base.id), DESCRIBED
                dataset, pictures = _decided(technique, seed, base, partial(drawn, technique, sketches))
                own = without_descriptions(dataset)
            elif seed is not None and technique.id not in ORDER:
                dataset, _ = _decided(technique, seed, base, partial(_planted_by, technique, dataset))
                own = dataset
            refuse_undecided(dataset, technique.id)
        truth = technique.truth(dataset)
        if technique.reference is not None:
            truth |= technique.reference(Instance(dataset, truth, base))
        files = technique.files(dataset) if technique.files else {}
    if own is None:
        _share(raw / "public", public)
    else:
        write_tables(own, public)
    if source == DESCRIBED:
        write_tables(dataset, public, source.train, source.test)
    for name, content in {**{name: text.encode() for name, text in files.items()}, **pictures}.items():
        (public / name).parent.mkdir(exist_ok=True)
        (public / name).write_bytes(content)
    _write_question(dataset, source, public / QUESTION_FILE, technique.id)
    steady = json.loads(json.dumps(truth), parse_float=_ten_digits)
    (private / TRUTH_FILE).write_text(json.dumps(steady, indent=1) + "\n", encoding="utf-8")
    save(sampled(dataset), private)


def _ten_digits(number: str) -> float:
    """Return a JSON number with ten digits, since the last bits of sums depend on the version of NumPy."""
    return float(f"{float(number):.10g}")


def _decided(technique: TechniqueSpec, seed: Seed, base: Task, draw: Callable[[np.random.Generator], Drawn]) -> Drawn:
    """Return the technique's own planted instance, redrawn until good and bad advice differ significantly."""
    for attempt in range(ATTEMPTS):
        drawn, files = draw(seed.generator(technique.id, base.id, *([attempt] if attempt else [])))
        if technique.gap is None or (technique.id == "cv" and not (drawn.group or drawn.time)):
            break
        ratio = technique.gap(Instance(drawn, {}, base)).ratio
        drawn.planted["gaps"] = {**drawn.planted.get("gaps", {}), technique.id: round(ratio, 2)}
        if ratio >= DECIDED:
            break
    return drawn, files


def _planted_by(technique: TechniqueSpec, dataset: Dataset, rng: np.random.Generator) -> Drawn:
    """Return a planted instance with the technique's own additions."""
    assert technique.plant is not None
    changed = technique.plant(dataset, rng)
    kinds = sorted({*dataset.planted["kinds"], *changed.planted.get("kinds", ())})
    return anonymous(replace(changed, planted={**dataset.planted, **changed.planted, "kinds": kinds}), rng), {}


def _write_question(dataset: Dataset, source: Source, path: Path, technique: str) -> None:
    question = {
        "technique": technique,
        "train": source.train,
        "test": source.test,
        **{name: getattr(dataset, name) for name in ("target", "targets", "ids", "features", "metric", "direction")},
        "rows_at_most": MAX_ROWS,
    }
    path.write_text(json.dumps(question, indent=1) + "\n", encoding="utf-8")


def _share(source: Path, target: Path) -> None:
    """Provide the base's public files: tables and small files as copies, large other files as links if possible."""

    def share(this: str, there: str) -> str:
        if os.path.getsize(this) > _COPIED_BYTES and not this.lower().endswith(ENDINGS):  # noqa: PTH202
            with contextlib.suppress(OSError):
                os.link(this, there)
                return there
        return shutil.copyfile(this, there)

    shutil.copytree(source, target, copy_function=share, dirs_exist_ok=True, symlinks=True)
