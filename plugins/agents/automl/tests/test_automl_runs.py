"""The agent as a process: its context is obeyed, and the same seed gives the same submission."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from mleredux_agent_automl.advice import Advice, read_advice
from mleredux_rollout import check_rollout

CURRICULUM = """\
# Findings so far

## Cross-validation: an estimate that the private test confirms

- The rows of one 'unit' were kept together.

Recommended (efficacy: 1.00; score 1.000):

- StratifiedGroupKFold(groups=`unit` before '_', n_splits=4)

Recommended (efficacy: 0.70; score 0.900):

- KFold(n_splits=5, shuffle=True)

## Encoding: feature types and their encodings

- TargetEncoder(smooth='auto', cv=5): `city`, `code (x)`

## Class imbalance: severity and countermeasures

- class_weight(class_weight='balanced')

## Leakage: why a score is too good to be true

- drop_columns: `refund`, `paid` (future_value)
- drop_duplicates: rows (duplicate_rows)

## Missing values: patterns, mechanisms and imputations

- SimpleImputer(strategy='median', add_indicator=True): `age`

## Scaling: which features need it, and how

- log1p(): `income`
- none: `city`
"""


def test_the_curriculum_is_read_as_it_is_written() -> None:
    advice = read_advice(CURRICULUM)
    assert advice.drop_columns == ["refund", "paid"]
    assert advice.drop_shared_rows
    assert advice.folds == {
        "name": "StratifiedGroupKFold",
        "groups": {"column": "unit", "separator": "_"},
        "n_splits": 4,
    }
    means = {"name": "TargetEncoder", "smooth": "auto", "cv": 5}
    assert advice.encoders == {"city": means, "code (x)": means}
    assert advice.imputers == {"age": {"name": "SimpleImputer", "strategy": "median", "add_indicator": True}}
    assert advice.scalers == {"income": {"name": "log1p"}, "city": {"name": "none"}}
    assert advice.class_weight == "balanced"


@pytest.mark.parametrize("effect", ["not significant on this data", "not scored"])
def test_advice_without_a_significant_effect_is_followed_only_in_folds_and_what_not_to_use(effect: str) -> None:
    undecided = re.sub(r"\n\n- ", f"\n\nRecommended (efficacy: {effect}; score 1.000):\n\n- ", CURRICULUM)
    advice = read_advice(undecided)
    assert advice.as_json().keys() == {"drop_columns", "drop_shared_rows", "folds"}


def test_json_counts_before_lines_and_what_is_wrong_is_ignored() -> None:
    given = {"folds": {"name": "KFold", "n_splits": 3}, "drop_columns": ["a", 1], "encoders": {"city": "drop", "b": 3}}
    advice = read_advice(f"{CURRICULUM}\n```json\n{json.dumps(given)}\n```\n")
    assert advice.folds == given["folds"]
    assert advice.drop_columns == ["a", "refund", "paid"]
    assert advice.encoders["city"] == {"name": "drop"} and "b" not in advice.encoders
    other = json.dumps({"drop_columns": ["a"], "shape": "[1]"})
    assert not read_advice(f"```json\n{other}\n```\n```json\n[1]\n```\n```json\n{{\n```\n")
    assert not read_advice("# A task\n\n- one column (the first)\n- use AUC(x, y): it is the metric\n")
    assert Advice(class_weight="none").as_json() == {"class_weight": "none"}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows in groups; `leak` tells the target in the training table alone."""
    folder, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    rows, train = 240, 160
    unit, x = np.repeat(np.arange(rows // 4), 4), rng.normal(size=rows)
    y = (x + rng.normal(size=rows) > 0).astype(int)
    table = pd.DataFrame({"id": range(rows), "unit": [f"u{n}" for n in unit], "x": x, "when": "2020-01-02"})
    table["city"] = np.where(rng.random(rows) < 0.2, None, rng.choice(list("abc"), rows))
    table["leak"] = np.where(np.arange(rows) < train, y, rng.permutation(y)) + rng.normal(0, 0.01, rows)
    table.iloc[:train].assign(y=y[:train]).to_csv(folder / "train.csv", index=False)
    table.iloc[train:].to_csv(folder / "test.csv", index=False)
    table.iloc[train:][["id"]].assign(y=0.5).to_csv(folder / "sample_submission.csv", index=False)
    return folder


def run(data: Path, folder: Path, description: str = "", **options: Any) -> Path:
    """Run the agent as the sandbox does; its output folder."""
    task, output = folder / "task", folder / "output"
    task.mkdir(parents=True)
    output.mkdir()
    facts = {"sample": "sample_submission.csv", "id_columns": ["id"], "target_columns": ["y"], "metric": "roc-auc"}
    (task / "task.json").write_text(json.dumps({**facts, "direction": "maximize"}), encoding="utf-8")
    (task / "description.md").write_text(description, encoding="utf-8")
    env = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "MLEREDUX_SEED": "3", "MLEREDUX_TIME_LIMIT": "300",
        "MLEREDUX_DEADLINE": str(time.time() + 300), "MLEREDUX_TASK_DIR": str(task), "MLEREDUX_DATA_DIR": str(data),
        "MLEREDUX_OUTPUT_DIR": str(output), "MLEREDUX_SCRATCH_DIR": str(folder), "MLEREDUX_CPUS": "1",
        "MLEREDUX_OPTIONS": json.dumps({"trials": 3, "folds": 3, **options}),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "mleredux_agent_automl"], env=env, cwd=output, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert check_rollout(output / "rollout" / "trajectory.json") == []
    return output


def extras(output: Path) -> list[dict[str, Any]]:
    steps = json.loads((output / "rollout" / "trajectory.json").read_text(encoding="utf-8"))["steps"]
    return [step["extra"] for step in steps if "extra" in step]


def test_the_same_seed_gives_the_same_submission_and_its_code_makes_it_again(data: Path, tmp_path: Path) -> None:
    first, second = (run(data, tmp_path / name) for name in ("first", "second"))
    submitted = (first / "submission.csv").read_bytes()
    assert submitted == (second / "submission.csv").read_bytes()
    assert submitted != (data / "sample_submission.csv").read_bytes()
    again = tmp_path / "again.csv"
    subprocess.run([sys.executable, str(first / "code" / "solution.py"), str(data), str(again)], check=True)
    made, told = (pd.read_csv(path) for path in (again, first / "submission.csv"))
    pd.testing.assert_frame_equal(made, told, rtol=1e-12)  # BLAS sums in another order on some machines
    versions = [extra["submission_version"] for extra in extras(first) if "submission_version" in extra]
    assert versions == list(range(1, len(versions) + 1)) and len(versions) >= 2


def test_advice_is_obeyed_and_what_is_impossible_in_it_is_not(data: Path, tmp_path: Path) -> None:
    advice = {"drop_columns": ["leak", "nowhere"], "folds": {"name": "GroupKFold", "groups": "unit", "n_splits": 4}}
    output = run(data, tmp_path / "advised", f"```json\n{json.dumps(advice)}\n```\n")
    told = extras(output)
    assert told[1]["folds"] == "GroupKFold, as advised" and told[1]["dropped_columns"] == ["leak"]
    assert max(extra["validation_metric"] for extra in told if "validation_metric" in extra) < 0.9
    wrong = {"folds": {"name": "GroupKFold", "groups": "nowhere"}, "drop_shared_rows": True, "scalers": {"x": "magic"}}
    output = run(data, tmp_path / "wrong", f"```json\n{json.dumps(wrong)}\n```\n")
    told = extras(output)
    assert told[1]["folds"].startswith("the usual ones, as GroupKFold is not possible")
    assert max(extra["validation_metric"] for extra in told if "validation_metric" in extra) > 0.95
