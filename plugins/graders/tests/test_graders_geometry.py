"""Masks, boxes and curves against plain computations of the same thing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mleredux_graders.audio.lwlrap import lwlrap
from mleredux_graders.classification.curves import roc_auc, weighted_roc_auc
from mleredux_graders.detection.average_precision_boxes import box_iou
from mleredux_graders.detection.coco_map import rectangle_iou
from mleredux_graders.detection.map_boxes_3d import corners, iou_3d, overlap_areas
from mleredux_graders.segmentation.masks import hausdorff
from mleredux_graders.segmentation.run_lengths import common, decode

SIZE = 40
seeds = given(seed=st.integers(0, 100_000))
often = settings(max_examples=40, deadline=None)


def painted(text: str) -> Any:
    """A mask as pixels, painted run by run."""
    pixels = np.zeros(SIZE, dtype=bool)
    pieces = [int(piece) for piece in text.split()]
    for start, length in zip(pieces[0::2], pieces[1::2], strict=True):
        pixels[start - 1 : start - 1 + length] = True
    return pixels


def mask_text(rng: np.random.Generator) -> str:
    pixels = rng.random(SIZE + 8) < 0.5
    starts = [n for n in range(len(pixels)) if pixels[n] and (n == 0 or not pixels[n - 1])]
    ends = [n for n in range(len(pixels)) if pixels[n] and (n + 1 == len(pixels) or not pixels[n + 1])]
    return " ".join(f"{start + 1} {end - start + 1}" for start, end in zip(starts, ends, strict=True))


@seeds
@often
def test_runs_are_the_pixels_that_painting_gives(seed: int) -> None:
    rng = np.random.default_rng(seed)
    one, other = mask_text(rng), mask_text(rng)
    a, b = decode(one, SIZE), decode(other, SIZE)
    assert a.area == painted(one).sum()
    assert a.pixels().tolist() == np.flatnonzero(painted(one)).tolist()
    assert common(a, b) == common(b, a) == (painted(one) & painted(other)).sum()


@pytest.mark.parametrize(
    ("text", "pixels"),
    [
        ("", []),
        ("  ", []),
        ("5", []),
        ("1 2 5", [0, 1, 4, 5]),
        ("39 9", [38, 39]),
        ("41 3 41 3", []),
        ("1 2 3 1", [0, 1, 2]),
        ("+1 1_0", list(range(10))),
    ],
)
def test_what_the_decoder_lets_through(text: str, pixels: list[int]) -> None:
    assert decode(text, SIZE).pixels().tolist() == pixels


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1 x", "not a whole number"),
        ("1.0 2", "not a whole number"),
        ("1 1 5 1 9", "odd number"),
        ("5 1 1 1", "are not increasing"),
        ("0 1", "start below 1"),
        ("1 0", "length below 1"),
        ("1 3 2 1", "overlap"),
        ("3 1 3 1", "overlap"),
    ],
)
def test_what_the_decoder_refuses(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        decode(text, SIZE)


@seeds
@often
def test_upright_rectangles_overlap_by_the_product_of_their_sides(seed: int) -> None:
    rng = np.random.default_rng(seed)
    centres, sides = rng.uniform(-3, 3, (2, 20, 2)), rng.uniform(0.5, 4, (2, 20, 2))
    shapes = [corners(centres[i], sides[i, :, 0], sides[i, :, 1], np.zeros(20)) for i in (0, 1)]
    low = np.maximum(*(centres[i] - sides[i] / 2 for i in (0, 1)))
    high = np.minimum(*(centres[i] + sides[i] / 2 for i in (0, 1)))
    expected = np.maximum(high - low, 0).prod(axis=1)
    assert overlap_areas(*shapes) == pytest.approx(expected, abs=1e-9)


@seeds
@often
def test_turning_or_moving_both_rectangles_changes_no_overlap(seed: int) -> None:
    rng = np.random.default_rng(seed)
    centres, sides, yaws = rng.uniform(-2, 2, (2, 20, 2)), rng.uniform(0.5, 4, (2, 20, 2)), rng.uniform(-4, 4, (2, 20))
    turn, move = rng.uniform(-4, 4), rng.uniform(-1000, 1000, 2)
    rotation = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])

    def overlap(middles: Any, angles: Any) -> Any:
        return overlap_areas(*(corners(middles[i], sides[i, :, 0], sides[i, :, 1], angles[i]) for i in (0, 1)))

    before = overlap(centres, yaws)
    assert overlap(centres @ rotation + move, yaws + turn) == pytest.approx(before, abs=1e-7)
    assert (before <= np.minimum(*(sides[i].prod(axis=1) for i in (0, 1))) + 1e-9).all()


@seeds
@often
def test_a_box_covers_itself(seed: int) -> None:
    rng = np.random.default_rng(seed)
    boxes = np.column_stack(
        [np.ones(5), rng.uniform(-900, 900, (5, 3)), rng.uniform(0.1, 9, (5, 3)), rng.uniform(-4, 4, 5)]
    )
    assert np.diag(iou_3d(boxes, boxes)) == pytest.approx(1, abs=1e-9)
    half = boxes.copy()
    half[:, 6] /= 2
    assert np.diag(iou_3d(half, boxes)) == pytest.approx(0.5, abs=1e-9)


@seeds
@often
def test_boxes_by_corners_and_by_sizes_are_one_thing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    low, size = rng.uniform(0, 9, (2, 6, 2)), rng.uniform(1, 9, (2, 6, 2))
    by_corners = box_iou(*(np.hstack([low[i], low[i] + size[i]]) for i in (0, 1)))
    by_sizes = rectangle_iou(*(np.hstack([low[i], size[i]]) for i in (0, 1)))
    assert by_corners == pytest.approx(by_sizes, abs=1e-9)


@seeds
@often
def test_the_hausdorff_distance_is_scipys(seed: int) -> None:
    from scipy.spatial.distance import directed_hausdorff

    rng = np.random.default_rng(seed)
    a, b = rng.random((int(rng.integers(1, 30)), 3)), rng.random((int(rng.integers(1, 30)), 3))
    expected = max(directed_hausdorff(a, b)[0], directed_hausdorff(b, a)[0])
    assert hausdorff(a, b) == pytest.approx(expected, abs=1e-12)


@seeds
@often
def test_lwlrap_is_scikit_learns_weighted_by_labels(seed: int) -> None:
    from sklearn.metrics import label_ranking_average_precision_score

    rng = np.random.default_rng(seed)
    true, scores = (rng.random((15, 6)) < 0.4).astype(float), rng.integers(0, 5, (15, 6)) / 5
    true[0, 0] = 1
    labelled = true.sum(axis=1) > 0
    expected = label_ranking_average_precision_score(
        true[labelled], scores[labelled], sample_weight=true[labelled].sum(axis=1)
    )
    assert lwlrap(true, scores) == pytest.approx(expected, abs=1e-12)


@seeds
@often
def test_equal_weights_of_slices_give_the_plain_area(seed: int) -> None:
    rng = np.random.default_rng(seed)
    true, scores = rng.integers(0, 2, 40), rng.integers(0, 15, 40) / 15
    true[:2] = 0, 1
    area = weighted_roc_auc(true, scores, (0.0, 0.4, 1.0), (1.0, 1.0))
    assert area == pytest.approx(roc_auc(true, scores), abs=1e-12)
