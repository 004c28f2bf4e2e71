"""Create the leaderboards of the starter competitions: fit reference models, and score them with each task's grader.

    python plugins/competitions/starter/scripts/make_leaderboards.py [TASK ...]

It writes `leaderboard.csv` next to each competition's declaration (best first), and prints the thresholds and checksums
for the declaration. It takes a few minutes on two cores.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
from mleredux.plugin.command import current
from mleredux.plugin.grader import GradingInput, Score
from mleredux.plugin.task import Task, thresholds
from mleredux_competition_starter import COMPETITIONS
from reference_models import classifiers, regressors
from sklearn.multioutput import MultiOutputRegressor


def predictions(task: Task, model: Any, train: pd.DataFrame, test: pd.DataFrame, sample: pd.DataFrame) -> pd.DataFrame:
    """Return the submission of one reference model."""
    targets = [column for column in train.columns if column not in test.columns]
    features = [column for column in test.columns if column != "id"]
    submission = sample.copy()
    columns = list(task.submission.target_columns)
    if "regression" in task.tags:
        model = MultiOutputRegressor(model) if len(targets) > 1 else model
        model.fit(train[features], train[targets if len(targets) > 1 else targets[0]])
        submission[columns] = model.predict(test[features]).reshape(len(test), len(columns))
        return submission
    model.fit(train[features], train[targets[0]])
    if task.metric.id == "accuracy":
        submission[columns[0]] = model.predict(test[features])
    elif len(columns) == 1:
        submission[columns[0]] = model.predict_proba(test[features])[:, 1]
    else:
        submission[columns] = pd.DataFrame(model.predict_proba(test[features]), columns=model.classes_)[columns]
    return submission


def make_leaderboard(task: Task, folder: Path) -> pd.DataFrame:
    """Prepare a competition in `folder`, and return the scores of all reference models, best first."""
    raw, public, private = (folder / name for name in ("raw", "public", "private"))
    for path in (raw, public, private):
        path.mkdir(parents=True)
    assert task.fetch and task.prepare
    task.fetch(raw)
    task.prepare(raw, public, private)
    train, test, sample = (pd.read_csv(public / f"{name}.csv") for name in ("train", "test", "sample_submission"))
    grader = current().grader(task.metric.id)
    models = regressors() if "regression" in task.tags else classifiers()
    path, entries = folder / "submission.csv", []
    for name, model in models.items():
        started = time.monotonic()
        predictions(task, model, train, test, sample).to_csv(path, index=False)
        result = grader.score(GradingInput(path, private, task, task.metric.options))
        score = result.value if isinstance(result, Score) else float(result)
        entries.append({"score": score, "model": name})
        print(f"  {score:.5f}  {name}  ({time.monotonic() - started:.1f} s)", flush=True)
    board = pd.DataFrame(entries)
    return board.sort_values(["score", "model"], ascending=[task.direction == "minimize", True], ignore_index=True)


def checksums(folder: Path) -> dict[str, dict[str, str]]:
    """Return the MD5 checksums of the prepared files, as in a declaration."""
    return {
        part: {path.name: hashlib.md5(path.read_bytes()).hexdigest() for path in sorted((folder / part).iterdir())}
        for part in ("public", "private")
    }


def main(names: list[str]) -> None:
    """Create the leaderboards of the named competitions (default: all)."""
    warnings.filterwarnings("ignore")
    for name in names or COMPETITIONS:
        task = current().task(name)
        print(name)
        with tempfile.TemporaryDirectory() as folder:
            board = make_leaderboard(task, Path(folder))
            board["score"] = board["score"].round(5)  # like Kaggle's boards and our reports, so that ties are ties
            assert task.leaderboard
            board.to_csv(task.leaderboard, index=False, lineterminator="\n")
            print(f"  checksums={checksums(Path(folder))}")
        print(f"  thresholds={thresholds(board['score'].tolist())!r}")


if __name__ == "__main__":
    main(sys.argv[1:])
