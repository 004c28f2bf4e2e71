"""Data of any size and shape take one form: columns, targets and structure found, large tables sampled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from mleredux.errors import DataError
from mleredux_agent_analyst import tables as analyst
from mleredux_techniques._kit.data.columns import as_classes, is_free_text, kind_of, same_spelling
from mleredux_techniques._kit.data.dataset import MAX_TEST_ROWS, MAX_TRAIN_ROWS, Dataset, GroupColumn, load, save
from mleredux_techniques._kit.data.splits import sampled
from mleredux_techniques._kit.data.structure import Structure, structure_of
from mleredux_techniques._kit.data.tables import read_table


def made(train: dict[str, Any], test: dict[str, Any], **changes: Any) -> Dataset:
    """A dataset of columns; `y` is the target."""
    frames = pd.DataFrame(train), pd.DataFrame(test)
    features = tuple(name for name in train if name != "y")
    fields: dict[str, Any] = {
        "task": "t",
        "problem": "regression",
        "train": frames[0],
        "test": frames[1],
        "target": "y",
        "targets": ("y",),
        "ids": (),
        "features": features,
        "kinds": {name: kind_of(frames[0][name]) for name in features},
        "train_rows": len(frames[0]),
        "test_rows": len(frames[1]),
    }
    return Dataset(**{**fields, **changes})


def test_a_dataset_is_read_back_as_it_was_saved(tmp_path: Path) -> None:
    numbers = np.random.default_rng(0).standard_normal(200) * 10.0 ** np.arange(-100, 100)
    texts = ["", " a", "NA", "1", 'say "x"\n, y', "é"] * 34
    train = {"x": numbers, "text": pd.Series([text or np.nan for text in texts[:200]], dtype=object), "y": numbers}
    dataset = made(train, train, group=GroupColumn("text", "_"), planted={"kinds": ["copy"]})
    save(dataset, tmp_path)
    again = load(tmp_path)
    pd.testing.assert_frame_equal(again.train, dataset.train, check_exact=True)
    assert (again.group, again.planted, again.kinds) == (dataset.group, dataset.planted, dataset.kinds)
    first = (tmp_path / "train.csv.gz").read_bytes()
    save(again, tmp_path)
    assert (tmp_path / "train.csv.gz").read_bytes() == first


@pytest.mark.parametrize("ending", ["csv", "tsv", "json", "jsonl", "parquet"])
def test_the_same_values_are_missing_in_every_format_for_grader_and_analyst(ending: str, tmp_path: Path) -> None:
    records = [
        {"given": "N/A", "prose": "", "number": 1.5, "kept": "na"},
        {"given": "null", "prose": " ", "number": None, "kept": "-"},
        {"given": "Ann", "prose": "None", "number": 2.5, "kept": "NAN"},
    ]
    frame, path = pd.DataFrame(records), tmp_path / f"train.{ending}"
    if ending == "parquet":
        frame.to_parquet(path)
    elif ending.startswith("json"):
        lines = "\n".join(map(json.dumps, records))
        path.write_text(lines if ending == "jsonl" else json.dumps(records), encoding="utf-8")
    else:
        frame.to_csv(path, index=False, sep="\t" if ending == "tsv" else ",")
    question = {"technique": "missing", "train": path.name, "test": None, "target": "kept", "ids": []}
    question |= {"features": ["given", "prose", "number"]}
    (tmp_path / "question.json").write_text(json.dumps(question), encoding="utf-8")
    for table in (read_table(path), analyst.read(tmp_path).train):
        assert table.isna().to_numpy().tolist() == [
            [True, True, False, False],
            [True, False, True, False],
            [False, True, False, False],
        ]
        assert table["number"].dtype.kind == "f"


def test_large_tables_are_sampled_and_the_sample_is_said() -> None:
    count = 30_000
    columns = {"g": [f"g{place // 7}" for place in range(count)], "x": np.arange(count), "y": np.arange(count) * 1.0}
    dataset = made(columns, columns)
    small = sampled(dataset)
    assert (len(small.train), len(small.test)) == (MAX_TRAIN_ROWS, MAX_TEST_ROWS)
    assert small.train["x"].is_monotonic_increasing
    assert "10,000 of 30,000 training rows" in small.sample
    pd.testing.assert_frame_equal(sampled(dataset).train, small.train)
    whole = sampled(made(columns, columns, group=GroupColumn("g"))).train
    assert MAX_TRAIN_ROWS - 7 < len(whole) <= MAX_TRAIN_ROWS
    assert whole.groupby("g").size().isin([7, count % 7]).all()


def test_groups_and_time_of_a_split_are_found_and_measurements_are_not() -> None:
    rng = np.random.default_rng(0)
    rows = 400
    person = np.array([f"{place // 4:03d}_{place % 4}" for place in range(rows)], dtype=object)
    day = pd.date_range("2020-01-01", periods=rows).astype(str).to_numpy(dtype=object)
    columns = {
        "person": person,
        "age": rng.integers(20, 60, rows),
        "size": rng.standard_normal(rows),
        "day": day,
        "y": rng.standard_normal(rows),
    }
    train, test = ({name: values[part] for name, values in columns.items()} for part in (slice(300), slice(300, None)))
    dataset = made(train, test)
    found = structure_of(dataset)
    assert found.group == GroupColumn("person", "_")
    assert found.time == "day"
    order = rng.permutation(rows)
    mixed = {name: values[order] for name, values in columns.items()}
    train, test = ({name: values[part] for name, values in mixed.items()} for part in (slice(300), slice(300, None)))
    dataset = made(train, test)
    assert structure_of(dataset) == Structure()


def test_columns_are_what_they_hold() -> None:
    assert kind_of(pd.Series(["True", None, "False"])) == "boolean"
    assert kind_of(pd.Series([True, False])) == "boolean"
    assert kind_of(pd.Series([0, 1])) == "number"
    assert kind_of(pd.Series(["a", None])) == "text"
    assert as_classes(pd.Series([1.0, 0.0])).tolist() == ["1", "0"]
    assert same_spelling(pd.Series(["1", "0"]), {"True", "False"}).tolist() == ["True", "False"]
    assert is_free_text(pd.Series([f"this is sentence number {place} of many" for place in range(20)]))
    assert not is_free_text(pd.Series(["Ghent", "Lille"] * 10))


@pytest.mark.parametrize("content", ["", "[1, 2]", '{"a": 1}', "[{", '[{"a": 1}, 2]'])
def test_what_is_not_a_table_is_rejected(content: str, tmp_path: Path) -> None:
    path = tmp_path / "train.json"
    path.write_text(content)
    with pytest.raises(DataError, match=r"Cannot read train\.json"):
        read_table(path)


def test_records_and_packed_tables_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[{"x": 1, "tags": ["b"]}, {"x": 2}]')
    (tmp_path / "a.jsonl").write_text('{"x": 1}\n{"x": 2}\n')
    (tmp_path / "a.tsv").write_text("x\ty\n1\t2\n2\t3\n")
    pd.DataFrame({"x": [1, 2]}).to_csv(tmp_path / "a.csv.gz", index=False)
    for name in ("a.json", "a.jsonl", "a.tsv", "a.csv.gz"):
        assert read_table(tmp_path / name)["x"].tolist() == [1, 2]
    assert read_table(tmp_path / "a.json")["tags"].iloc[0] == '["b"]'
