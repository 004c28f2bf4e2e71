"""Large JSON documents come out exactly as Python's json module indents them."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mleredux.errors import DataError
from mleredux_competition_mlebench.blocks import Workspace
from mleredux_competition_mlebench.blocks.json_records import IndentedJson
from mleredux_competition_mlebench.blocks.per_category import split_categories

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
documents = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=30
)


def written(document: Any) -> str:
    file = io.BytesIO()
    IndentedJson(document).stream(file)
    return file.getvalue().decode("ascii")


@given(documents)
def test_any_document_is_written_as_the_json_module_does(document: Any) -> None:
    assert written(document) == json.dumps(document, indent=4, sort_keys=True)


def test_many_records_are_written_as_the_json_module_does() -> None:
    document = {"images": [{"id": n, "file_name": f"{n}.jpg", "größe": 0.1 * n} for n in range(25_000)], "info": {}}
    assert written(document) == json.dumps(document, indent=4, sort_keys=True)


def collection(*categories: int) -> dict[str, Any]:
    """One image of each of these categories, numbered in this order."""
    return {
        "annotations": [{"image_id": n, "category_id": category} for n, category in enumerate(categories)],
        "images": [{"id": n} for n in range(len(categories))],
    }


def test_small_categories_give_their_last_image_and_single_ones_none(tmp_path: Any) -> None:
    train, test = split_categories(Workspace(tmp_path), collection(7, 9, 7, 9, 9, 1), 0.2)
    assert [pair.image["id"] for pair in train] == [0, 1, 3, 5]
    assert sorted(pair.image["id"] for pair in test) == [2, 4]


def test_larger_categories_give_their_share_rounded_up(tmp_path: Any) -> None:
    train, test = split_categories(Workspace(tmp_path), collection(*[3] * 11), 0.2)
    assert (len(train), len(test)) == (8, 3)


def test_annotations_beside_other_images_are_an_error(tmp_path: Any) -> None:
    document = collection(1, 1, 1)
    document["images"].reverse()
    with pytest.raises(DataError, match="not parallel lists"):
        split_categories(Workspace(tmp_path), document, 0.2)
