"""Encodings of what repeats: months, hours, days of the week."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from mleredux_techniques._kit.vocabulary import encoders
from mleredux_techniques._kit.vocabulary.preprocessing import Preprocessing, Rows, matrices


def test_cyclic_encodings_put_the_last_beside_the_first() -> None:
    """Of numbers, times of day and ordered texts, each by its own period."""
    days = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]

    def encoded(train: np.ndarray, other: np.ndarray, encoder: Any) -> tuple[np.ndarray, np.ndarray]:
        kinds: dict[str, Any] = {"a": "text" if train.dtype == object else "number"}
        frames, how = [pd.DataFrame({"a": part}) for part in (train, other)], {"a": Preprocessing(encoding=encoder)}
        return matrices(Rows(*frames, kinds, np.arange(len(train)) % 2, True, 0, how))

    for values, options, beside, apart in (
        (np.arange(1.0, 13.0), {}, (0, 11), (0, 6)),
        (np.arange(12.0), {"period": 6.0}, (0, 6), (0, 3)),
        (np.array([f"{hour}:30" for hour in range(24)], dtype=object), {}, (0, 23), (0, 12)),
        (np.array(days, dtype=object), {"categories": days}, (0, 6), (0, 3)),
    ):
        encoder = encoders.CyclicEncoder(name="CyclicEncoder", **options)
        for table in encoded(values, values, encoder):
            assert table.shape == (len(values), 2)
            assert np.linalg.norm(table[beside[0]] - table[beside[1]]) < np.linalg.norm(table[0] - table[apart[1]]) / 2
    assert np.isfinite(encoded(values, np.array(["none"], dtype=object), encoder)[1]).all()
