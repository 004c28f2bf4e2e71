"""A sample of rows on which strategies are executed, if there are too many."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mleredux_techniques._kit.dataset import MAX_TEST_ROWS, MAX_TRAIN_ROWS, Dataset

if TYPE_CHECKING:
    import pandas as pd

_SEED = 20_240_601


def sampled(dataset: Dataset) -> Dataset:
    """Return at most `MAX_TRAIN_ROWS` and `MAX_TEST_ROWS` rows, drawn at random (complete groups), in their order."""
    rng = np.random.default_rng(_SEED)
    train, test = _draw(dataset, dataset.train, MAX_TRAIN_ROWS, rng), _draw(dataset, dataset.test, MAX_TEST_ROWS, rng)
    if len(train) == len(dataset.train) and len(test) == len(dataset.test):
        return dataset
    what = "complete groups" if dataset.group else "each with equal probability"
    sentence = (
        f"Strategies were executed on a sample of {len(train):,} of {len(dataset.train):,} training rows and "
        f"{len(test):,} of {len(dataset.test):,} test rows, drawn at random, {what}; facts refer to all rows."
    )
    return replace(dataset, train=train, test=test, sample=sentence)


def _draw(dataset: Dataset, frame: pd.DataFrame, most: int, rng: np.random.Generator) -> pd.DataFrame:
    if len(frame) <= most:
        return frame
    if dataset.group is None:
        return _rows(frame, np.sort(rng.permutation(len(frame))[:most]))
    names, codes = np.unique(dataset.group.of(frame).to_numpy(dtype=str), return_inverse=True)
    order = rng.permutation(len(names))
    held = np.cumsum(np.bincount(codes)[order])
    kept = order[: max(1, int(np.searchsorted(held, most, side="right")))]
    return _rows(frame, np.flatnonzero(np.isin(codes, kept)))


def _rows(frame: pd.DataFrame, places: np.ndarray[Any, Any]) -> pd.DataFrame:
    chosen: pd.DataFrame = frame.iloc[places].reset_index(drop=True)
    return chosen
