"""The variants `fixed` correct the stated faults: groups are held out as a unit, and graders match the metric."""

from __future__ import annotations

import zipfile
from pathlib import Path

import mleredux_competition_mlebench
import numpy as np
import pandas as pd
import pytest
from mleredux._core.plugins import current
from mleredux._core.plugins.loader import resolve
from mleredux.errors import InvalidSubmission
from mleredux.models import Competition, GradingInput
from mleredux_competition_mlebench.blocks import Preparation

pytestmark = pytest.mark.shared

REFS = {ref.id: ref for ref in mleredux_competition_mlebench.mleredux_register_tasks()}
GROUPS = {
    "chaii-hindi-and-tamil-question-answering": "context",
    "facebook-recruiting-iii-keyword-extraction": "Title",
    "lmsys-chatbot-arena": "prompt",
    "movie-review-sentiment-analysis-kernels-only": "SentenceId",
    "us-patent-phrase-to-phrase-matching": "anchor",
}


def fixed(competition: str) -> Competition:
    task: Competition = resolve(REFS[competition])
    changed: Competition = task.variants["fixed"](task)
    assert changed.id == f"{competition}+fixed"
    assert changed.raw_id == competition
    assert changed.version != task.version
    return changed


def prepare(task: Competition, shared: Path, folder: Path, test_size: int | None = None) -> Path:
    with zipfile.ZipFile(shared / "golden" / str(task.raw_id) / "raw.zip") as packed:
        packed.extractall(folder / "raw")
    assert isinstance(task.prepare, Preparation)
    task.prepare.with_settings(test_size=test_size)(folder / "raw", folder / "public", folder / "private")
    return folder


def read(folder: Path, part: str) -> pd.DataFrame:
    path = folder / "public" / f"{part}.csv"
    if path.exists():
        return pd.read_csv(path, keep_default_na=False)
    return pd.read_csv(folder / "public" / f"{part}.tsv.zip", sep="\t", keep_default_na=False)


def score(task: Competition, submission: Path, folder: Path) -> float:
    assert isinstance(task.metric.grader, str)
    result = (
        current()
        .grader(task.metric.grader)
        .score(GradingInput(submission, folder / "private", task, task.metric.options))
    )
    return result if isinstance(result, float) else result.value


@pytest.mark.parametrize("competition", sorted(GROUPS))
def test_no_group_is_on_both_sides(competition: str, shared: Path, tmp_path: Path) -> None:
    task = fixed(competition)
    prepare(task, shared, tmp_path)
    train, test = read(tmp_path, "train"), read(tmp_path, "test")
    assert len(train) > len(test) > 0
    assert not set(train[GROUPS[competition]]) & set(test[GROUPS[competition]])
    answers = pd.read_csv(tmp_path / "private" / task.answers)
    (name,) = task.submission.id_columns
    assert list(answers[name]) == list(test[name])
    assert not task.checksums


def test_rows_of_molecules_may_be_in_any_order(shared: Path, tmp_path: Path) -> None:
    task = fixed("stanford-covid-vaccine")
    prepare(task, shared, tmp_path)
    answers = pd.read_csv(tmp_path / "private" / task.answers)
    answers[::-1].to_csv(tmp_path / "backwards.csv", index=False)
    assert score(task, tmp_path / "backwards.csv", tmp_path) == pytest.approx(0, abs=1e-9)


def test_keys_of_rides_are_compared(shared: Path, tmp_path: Path) -> None:
    task = fixed("new-york-city-taxi-fare-prediction")
    prepare(task, shared, tmp_path, test_size=23)
    submissions = shared / "golden" / "new-york-city-taxi-fare-prediction" / "submissions"
    assert score(task, submissions / "perfect.csv", tmp_path) == pytest.approx(0, abs=1e-9)
    with pytest.raises(InvalidSubmission):
        score(task, submissions / "keys_replaced.csv", tmp_path)


def test_labels_of_comments_are_taken_by_name(shared: Path, tmp_path: Path) -> None:
    task = fixed("jigsaw-toxic-comment-classification-challenge")
    prepare(task, shared, tmp_path)
    submissions = shared / "golden" / "jigsaw-toxic-comment-classification-challenge" / "submissions"
    table = pd.read_csv(submissions / "noisy.csv")
    table[table.columns[::-1]].to_csv(tmp_path / "backwards.csv", index=False)
    expected = score(task, submissions / "noisy.csv", tmp_path)
    assert score(task, tmp_path / "backwards.csv", tmp_path) == pytest.approx(expected)


def test_comments_are_ranked_without_a_threshold(shared: Path, tmp_path: Path) -> None:
    task = fixed("jigsaw-unintended-bias-in-toxicity-classification")
    prepare(task, shared, tmp_path)
    perfect = pd.read_csv(
        shared / "golden" / "jigsaw-unintended-bias-in-toxicity-classification" / "submissions" / "perfect.csv"
    )
    perfect.assign(prediction=perfect["prediction"] / 10).to_csv(tmp_path / "low.csv", index=False)
    assert score(task, tmp_path / "low.csv", tmp_path) == pytest.approx(1)
    assert "converted to 0 or 1" not in task.describe()
    assert "converted to 0 or 1" not in task.describe(obfuscated=True)


def test_purchases_of_seven_days_are_asked_for_by_ten_digits(shared: Path, tmp_path: Path) -> None:
    task = fixed("h-and-m-personalized-fashion-recommendations")
    prepare(task, shared, tmp_path)
    raw = pd.read_csv(tmp_path / "raw" / "transactions_train.csv", dtype=str)
    log = pd.read_csv(tmp_path / "public" / "transactions_train.csv", dtype=str)
    answers = pd.read_csv(tmp_path / "private" / task.answers, dtype=str)
    dates = pd.to_datetime(raw["t_dat"])
    held_out = raw[dates > dates.max() - pd.Timedelta(days=7)]
    bought = answers["prediction"].str.split().explode()
    assert sorted(bought) == sorted(held_out["article_id"])
    assert set(bought.str.len()) == {10}
    assert len(log) + len(bought) == len(raw)


def test_no_frame_of_speech_is_on_both_sides(tmp_path: Path) -> None:
    frames = np.arange(30_011)
    windows = np.lib.stride_tricks.sliding_window_view(frames, 11)
    raw = tmp_path / "raw" / "timit_11" / "timit_11"
    raw.mkdir(parents=True)
    np.save(raw / "train_11.npy", windows)
    np.save(raw / "train_label_11.npy", np.arange(len(windows)) % 39)
    np.save(raw / "test_11.npy", windows[:10_000])
    task = fixed("ml2021spring-hw2")
    assert task.prepare is not None
    task.prepare(tmp_path / "raw", tmp_path / "public", tmp_path / "private")
    train, test = (
        np.load(tmp_path / "public" / "timit_11" / "timit_11" / f"{part}_11.npy") for part in ("train", "test")
    )
    assert not set(train.ravel()) & set(test.ravel())
    assert len(test) == 8_000
    assert len(train) > 21_000
    answers = pd.read_csv(tmp_path / "private" / task.answers)
    assert (answers["ClassId"] == test[:, 0] % 39).all()
