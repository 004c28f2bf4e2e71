"""Recommendations as lines: fixed terms and known columns only."""

from __future__ import annotations

from typing import Any

import pytest
from mleredux_techniques.cv.document import GroupKFold
from mleredux_techniques.kit import spelled


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ({"column": "ward"}, "`ward`"),
        ({"column": "ward", "second": "day"}, "`ward` and `day`"),
        ({"column": "ward", "separator": "_"}, "`ward` before the first '_'"),
        ({"column": "ward", "separator": "_", "after": True}, "`ward` after the last '_'"),
        ({"column": "ward", "second": "free text"}, "'…'"),
    ],
)
def test_keys_of_groups_are_told_whole(key: dict[str, Any], told: str) -> None:
    method = GroupKFold.model_validate({"name": "GroupKFold", "groups": key})
    assert spelled(method, {"ward", "day"}) == f"GroupKFold(groups={told}, n_splits=5)"
