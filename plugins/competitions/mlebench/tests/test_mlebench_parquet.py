"""Parquet tables: read and written by the extra `parquet`, never held to a checksum."""

from __future__ import annotations

import io
from pathlib import Path

import mleredux_competition_mlebench
import pandas as pd
import pytest
from mleredux._core.plugins.loader import resolve
from mleredux.errors import DataError
from mleredux_competition_mlebench.blocks.parquet import Parquet, read_parquet
from mleredux_competition_mlebench.facts import all_facts

REFS = {ref.id: ref for ref in mleredux_competition_mlebench.mleredux_register_tasks()}
TABLE = pd.DataFrame({"event_id": [3, 1], "azimuth": [0.5, 1 / 3]}, index=[7, 5])


def test_what_is_written_is_read_again_with_its_types_and_without_index(tmp_path: Path) -> None:
    Parquet(TABLE).write(tmp_path / "table.parquet")
    found = read_parquet(tmp_path / "table.parquet", "table.parquet", ["event_id", "azimuth"])
    pd.testing.assert_frame_equal(found, TABLE.reset_index(drop=True))
    stream = io.BytesIO()
    Parquet(TABLE).stream(stream)
    pd.testing.assert_frame_equal(pd.read_parquet(stream), found)


@pytest.mark.parametrize("damage", [b"", b"PAR1 and then nothing"])
def test_a_damaged_table_is_one_clear_error(damage: bytes, tmp_path: Path) -> None:
    (tmp_path / "table.parquet").write_bytes(damage)
    with pytest.raises(DataError, match=r"Cannot read .* as a Parquet table"):
        read_parquet(tmp_path / "table.parquet", "table.parquet", ["event_id"])


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    Parquet(TABLE).write(tmp_path / "table.parquet")
    with pytest.raises(DataError, match="zenith"):
        read_parquet(tmp_path / "table.parquet", "table.parquet", ["event_id", "zenith"])


def test_their_bytes_are_not_held_to_published_checksums() -> None:
    name = "icecube-neutrinos-in-deep-ice"
    held = resolve(REFS[name]).checksums["public"]
    published = all_facts()[name]["checksums"]["public"]
    assert {file for file in published if file not in held} == {"train_meta.parquet", "test_meta.parquet"}
    assert held["sensor_geometry.csv"] == published["sensor_geometry.csv"]
