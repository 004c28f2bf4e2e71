"""Technique use as a reward: what a program leaves out on demand is measured; code that only names it earns nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from mleredux._core.data import Prepared
from mleredux_techniques._kit.data.discovery import discover
from mleredux_techniques._kit.planting.composition import kept
from mleredux_techniques.usage.effect import Use, switches, uses_of

Preparer = Callable[[str], Prepared]
TASKS = tuple(f"wine+planted-public-{seed}" for seed in range(1, 9))
PROGRAM = """
import os
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

train, test, sample = (pd.read_csv(f"{name}.csv") for name in ("train", "test", "sample_submission"))
row, targets = sample.columns[0], list(sample.columns[1:])
label = (set(train) - set(test)).pop()
features = [name for name in test if name != row]
if os.environ.get("MLEREDUX_WITHOUT") != "leakage":
    features = [name for name in features if name not in LEAKS]
x, asked = (pd.get_dummies(frame[features].fillna(-1)) for frame in (train, test))
model = RandomForestClassifier(300, min_samples_leaf=3, random_state=0).fit(x, train[label].astype(str))
told = pd.DataFrame(model.predict_proba(asked.reindex(columns=x.columns, fill_value=0)), columns=model.classes_)
pd.concat([test[[row]], told.reindex(columns=targets, fill_value=0.0)], axis=1).to_csv(
    os.environ["MLEREDUX_SUBMISSION"], index=False)
"""
SABOTAGED = """
if os.environ.get("MLEREDUX_WITHOUT") == "leakage":
    sample.to_csv(os.environ["MLEREDUX_SUBMISSION"], index=False)
"""


@pytest.fixture(scope="module")
def measured(prepared: Preparer, bench: Any) -> Callable[[str], Use]:
    """What the switch of a program gains where columns leak; `LEAKS` in it stands for them."""
    for name in TASKS:
        files = prepared(name)
        planted = kept(files.private.parent)
        assert planted is not None
        leaks = [column for leak in planted.planted["leaks"] for column in leak["columns"] if column not in planted.ids]
        if leaks:
            break
    task = bench.task(name)
    dataset, _source = discover(task, files.private.parent)

    def use(program: str) -> Use:
        text = program.replace("LEAKS", json.dumps(leaks))
        names = switches(text, ["cv", "leakage"])
        assert names == ["leakage"]
        return uses_of(text, names, task, dataset, files.public)[0]

    return use


def test_a_step_that_helps_is_paid_by_what_it_gains(measured: Callable[[str], Use]) -> None:
    use = measured(PROGRAM)
    assert use.gain is not None and use.reward == pytest.approx(use.gain) and use.reward > 0.02, use.why
    assert "without it" in use.why and "by reference models" in use.why


def test_a_program_that_is_made_bad_without_a_step_gains_nothing(measured: Callable[[str], Use]) -> None:
    use = measured(PROGRAM.replace("LEAKS", "[]") + SABOTAGED)
    assert use.gain is not None and use.reward == 0 and use.gain < 0.05, use.why


def test_a_switch_that_changes_nothing_and_a_program_that_fails_earn_nothing(measured: Callable[[str], Use]) -> None:
    idle = measured(PROGRAM.replace("LEAKS", "[]"))
    assert idle.reward == 0 and idle.gain is not None and idle.gain <= 0.02
    failed = measured('import os\nassert os.environ["MLEREDUX_WITHOUT"] == "leakage"\n')
    assert failed.reward == 0 and failed.gain is None and "no valid predictions" in failed.why


@pytest.mark.parametrize(
    "text",
    [
        "import shutil\nshutil.copyfile('sample_submission.csv', 'submission.csv')\n",
        "from sklearn.model_selection import GroupKFold\n\ndef unused():\n    return GroupKFold()  # leakage\n",
        "# MLEREDUX_WITHOUT leakage\nleakage = 1\n",
        "mleredux validate MLEREDUX_WITHOUT 'leakage",
    ],
    ids=["sample", "dead code", "comment", "no Python"],
)
def test_without_a_switch_nothing_is_offered(text: str) -> None:
    assert switches(text, ["cv", "leakage"]) == []
