"""The baseline on real competitions of several kinds, split by a simple rule of the test: it copes, and it learns."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics

pytestmark = [pytest.mark.shared, pytest.mark.slow]

TIME_LIMIT = 240


def few(candidates: int) -> dict[str, str]:
    """Options: so many candidates are enough to see that it copes with a kind of task, and learns."""
    return {"MLEREDUX_OPTIONS": json.dumps({"search_seconds": 200, "folds": 3, "candidates": candidates})}


def halves(table: pd.DataFrame, share: float = 0.25) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Training rows and held-out rows."""
    held_out = np.random.default_rng(0).random(len(table)) < share
    return table[~held_out].reset_index(drop=True), table[held_out].reset_index(drop=True)


@pytest.fixture
def archive(shared: Path) -> Callable[[str], zipfile.ZipFile]:
    return lambda name: zipfile.ZipFile(shared / "data" / "kaggle" / name / f"{name}.zip")


def read_csv(archive: zipfile.ZipFile, member: str) -> pd.DataFrame:
    """A table of an archive, itself packed or not."""
    data = io.BytesIO(archive.read(member))
    return pd.read_csv(data, compression="zip" if member.endswith(".zip") else None)


def answers(agent: Any, held_out: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """What the agent submitted, which has a row for each that was held out."""
    found = pd.read_csv(agent.submission)
    assert list(found.columns[-len(columns) :]) == columns or set(columns) <= set(found.columns)
    assert len(found) == len(held_out)
    assert found[columns].notna().all(axis=None)
    return found


def test_spaceship_titanic(archive: Any, tmp_path: Path, start_baseline: Any) -> None:
    train, held_out = halves(read_csv(archive("spaceship-titanic"), "train.csv"))
    train.to_csv(tmp_path / "train.csv", index=False)
    held_out.drop(columns="Transported").to_csv(tmp_path / "test.csv", index=False)
    sample = held_out[["PassengerId"]].assign(Transported=False)
    sample.to_csv(tmp_path / "sample_submission.csv", index=False)
    facts = {"sample": "sample_submission.csv", "metric": "accuracy", "direction": "maximize"}
    agent = start_baseline(tmp_path, facts, time_limit=TIME_LIMIT, **few(3))
    assert agent.finish() == 0, "\n".join(agent.log)
    found = answers(agent, held_out, ["Transported"])
    assert found["Transported"].dtype == bool
    assert (found["Transported"] == held_out["Transported"]).mean() > 0.785, "\n".join(agent.log)


def test_detecting_insults(archive: Any, tmp_path: Path, start_baseline: Any) -> None:
    train, held_out = halves(read_csv(archive("detecting-insults-in-social-commentary"), "train.csv"))
    train.to_csv(tmp_path / "train.csv", index=False)
    held_out.drop(columns="Insult").to_csv(tmp_path / "test.csv", index=False)
    held_out.assign(Insult=0).to_csv(tmp_path / "sample_submission_null.csv", index=False)
    facts = {"sample": "sample_submission_null.csv", "id_columns": ["Comment"], "target_columns": ["Insult"]}
    agent = start_baseline(
        tmp_path, {**facts, "metric": "roc-auc", "direction": "maximize"}, time_limit=TIME_LIMIT, **few(2)
    )
    assert agent.finish() == 0, "\n".join(agent.log)
    found = answers(agent, held_out, ["Insult"])
    assert metrics.roc_auc_score(held_out["Insult"], found["Insult"]) > 0.87, "\n".join(agent.log)


def test_random_acts_of_pizza(archive: Any, tmp_path: Path, start_baseline: Any) -> None:
    kaggle = archive("random-acts-of-pizza")
    train, held_out = halves(pd.DataFrame(json.loads(kaggle.read("train.json"))))
    train = train[:1500]
    known = list(pd.DataFrame(json.loads(kaggle.read("test.json"))).columns)
    train.to_json(tmp_path / "train.json", orient="records")
    held_out[known].to_json(tmp_path / "test.json", orient="records")
    target = "requester_received_pizza"
    held_out[["request_id"]].assign(**{target: 0}).to_csv(tmp_path / "sampleSubmission.csv", index=False)
    facts = {"sample": "sampleSubmission.csv", "metric": "roc-auc", "direction": "maximize"}
    agent = start_baseline(tmp_path, facts, time_limit=TIME_LIMIT, **few(2))
    assert agent.finish() == 0, "\n".join(agent.log)
    found = answers(agent, held_out, [target])
    assert metrics.roc_auc_score(held_out[target], found[target]) > 0.62, "\n".join(agent.log)


def test_leaf_classification(archive: Any, tmp_path: Path, start_baseline: Any) -> None:
    kaggle = archive("leaf-classification")
    train, held_out = halves(read_csv(kaggle, "train.csv.zip"))
    train.to_csv(tmp_path / "train.csv", index=False)
    held_out.drop(columns="species").to_csv(tmp_path / "test.csv", index=False)
    (tmp_path / "images.zip").write_bytes(kaggle.read("images.zip"))
    species = sorted(train["species"].unique())
    sample = held_out[["id"]].assign(**dict.fromkeys(species, 1 / len(species)))
    sample.to_csv(tmp_path / "sample_submission.csv", index=False)
    facts = {"sample": "sample_submission.csv", "id_columns": ["id"], "metric": "log-loss", "direction": "minimize"}
    agent = start_baseline(tmp_path, facts, time_limit=TIME_LIMIT, **few(3))
    assert agent.finish() == 0, "\n".join(agent.log)
    found = answers(agent, held_out, species)
    looked_at = (" 768 pixels", "images are left out: TimeoutError")
    assert any(words in line for line in agent.log for words in looked_at), "the images were not found"
    loss = metrics.log_loss(held_out["species"], found[species], labels=species)
    assert loss < 0.25, "\n".join(agent.log)


def test_nomad_transparent_conductors(archive: Any, tmp_path: Path, start_baseline: Any) -> None:
    train, held_out = halves(read_csv(archive("nomad2018-predict-transparent-conductors"), "train.csv.zip"))
    targets = ["formation_energy_ev_natom", "bandgap_energy_ev"]
    train.to_csv(tmp_path / "train.csv", index=False)
    held_out.drop(columns=targets).to_csv(tmp_path / "test.csv", index=False)
    sample = held_out[["id"]].assign(**dict.fromkeys(targets, 0.1))
    sample.to_csv(tmp_path / "sample_submission.csv", index=False)
    facts = {"sample": "sample_submission.csv", "metric": "rmsle", "direction": "minimize"}
    agent = start_baseline(tmp_path, facts, time_limit=TIME_LIMIT, **few(4))
    assert agent.finish() == 0, "\n".join(agent.log)
    found = answers(agent, held_out, targets)
    error = (np.log1p(found[targets]) - np.log1p(held_out[targets])) ** 2
    assert float(np.sqrt(error.mean()).mean()) < 0.07, "\n".join(agent.log)
