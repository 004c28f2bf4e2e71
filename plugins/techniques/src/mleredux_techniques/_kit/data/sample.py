"""Random samples of large tables, on which strategies are executed."""

from __future__ import annotations

from dataclasses import replace

from mleredux_techniques._kit.data.dataset import MAX_TEST_ROWS, MAX_TRAIN_ROWS, Dataset, Frame
from mleredux_techniques._kit.data.splits import draw, group_codes

_SEED = 20_240_601


def sampled(dataset: Dataset) -> Dataset:
    """Return at most `MAX_TRAIN_ROWS` and `MAX_TEST_ROWS` rows, drawn at random (as whole groups), in order.

    Raises:
        NotApplicable: Groups are too large.
    """
    train = _draw(dataset, dataset.train, MAX_TRAIN_ROWS, _SEED)
    test = _draw(dataset, dataset.test, MAX_TEST_ROWS, _SEED + 1)
    if len(train) == len(dataset.train) and len(test) == len(dataset.test):
        return dataset
    what = "complete groups" if dataset.group else "each with equal probability"
    sentence = (
        f"Strategies were executed on a sample of {len(train):,} of {len(dataset.train):,} training rows and "
        f"{len(test):,} of {len(dataset.test):,} test rows, drawn at random, {what}; facts refer to all rows."
    )
    return replace(dataset, train=train, test=test, sample=sentence)


def _draw(dataset: Dataset, frame: Frame, most: int, seed: int) -> Frame:
    chosen: Frame = frame.iloc[draw(group_codes(dataset, frame), len(frame), most, seed=seed)]
    return chosen if len(chosen) == len(frame) else chosen.reset_index(drop=True)
