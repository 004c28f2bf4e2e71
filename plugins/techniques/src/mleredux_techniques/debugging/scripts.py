"""Training scripts, assembled from variants of blocks (`blocks.toml`).

Some lines have an unusual form, so that no form is suspicious by itself; variable names differ between scripts.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mleredux_techniques._kit.data.dataset import Dataset
from mleredux_techniques.debugging.mutations import unusual

SCRIPT, SUBMISSION, VALIDATION = "train.py", "submission.csv", "validation.json"


@dataclass(frozen=True)
class Script:
    """A script without faults.

    Attributes:
        plain: Lines in their usual form, from which faults are derived.
        sound: The same lines, some in another form.
        metric: The metric that the script validates with.
    """

    plain: str
    sound: str
    metric: str

    def text(self, faults: Mapping[int, str] | None = None) -> str:
        """Return the script with the given faults: line number, from 1 → wrong line."""
        replacement = (faults or {}).get
        return "\n".join(replacement(number, line) for number, line in enumerate(self.sound.split("\n"), start=1))


def script(dataset: Dataset, style: int) -> Script:
    """Return the script in a style, for the columns of a dataset; equal styles give equal scripts."""
    rng = np.random.default_rng(style)
    classes = dataset.problem != "regression"
    blocks = tomllib.loads(Path(__file__).with_name("blocks.toml").read_text(encoding="utf-8"))
    own = blocks["classes" if classes else "numbers"]

    def one(variants: Sequence[Any]) -> Any:
        return variants[int(rng.integers(len(variants)))]

    metric = one(list(own["metrics"]))
    formula, choose = own["metrics"][metric]
    folds, right = one(blocks["folds"])
    candidates = [f'    "{name}": {code},' for name, code in own["candidates"].items()]
    listed = "\n".join(["candidates = {", *(candidates[place] for place in rng.permutation(len(candidates))), "}\n"])
    constants = f"SEED, FOLDS = {rng.integers(1, 100)}, {rng.integers(4, 7)}\n"
    constants += f"ID, TARGET = {dataset.ids[0]!r}, {dataset.target!r}\n"
    body = [constants, one(blocks["load"]), blocks["fill"], one(blocks["scale"]), own["labels"], one(blocks["shuffle"])]
    text = "\n".join([blocks["head"] + own["imports"], *body, folds, listed, blocks["loop"], blocks["last"]])
    held = {
        "SHAPE": "(len(X), len(classes))" if classes else "len(X)",
        "RIGHT": right, "METRIC": formula, "CHOOSE": choose,
        "PREDICT": "predict_proba" if classes else "predict", "NAMES": "classes" if classes else '["prediction"]',
        "FEATURE": repr(dataset.features[int(rng.integers(len(dataset.features)))]),
    }  # fmt: skip
    text = _replaced(_replaced(text, held), {name: one(others) for name, others in blocks["synonyms"].items()})
    return Script(text, unusual(text, rng), metric)


def _replaced(text: str, words: dict[str, str]) -> str:
    return re.sub(rf"\b({'|'.join(words)})\b", lambda match: words[match[1]], text)
