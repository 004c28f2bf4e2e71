"""The variants `fixed` of image, audio and video tasks: nothing gives answers away, and graders do what they say."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from pathlib import Path

import mleredux_mlebench
import numpy as np
import pandas as pd
import pytest
from mleredux.errors import DataError, InvalidSubmission
from mleredux.models import Competition, GradingInput
from mleredux.plugins import current
from mleredux.plugins.loading import resolve
from mleredux_mlebench.blocks import Preparation
from scipy.io import loadmat, savemat

pytestmark = pytest.mark.shared

REFS = {ref.id: ref for ref in mleredux_mlebench.mleredux_register_tasks()}


def fixed(competition: str) -> Competition:
    task: Competition = resolve(REFS[competition], None)
    changed: Competition = task.variants["fixed"](task)
    assert (changed.id, changed.raw_id) == (f"{competition}+fixed", competition)
    assert changed.version != task.version
    return changed


def unpacked(task: Competition, shared: Path, folder: Path) -> Path:
    with zipfile.ZipFile(shared / "golden" / str(task.raw_id) / "raw.zip") as packed:
        packed.extractall(folder / "raw")
    return folder / "raw"


def prepared(task: Competition, shared: Path, folder: Path) -> Path:
    if not (folder / "raw").is_dir():
        unpacked(task, shared, folder)
    assert isinstance(task.prepare, Preparation)
    task.prepare(folder / "raw", folder / "public", folder / "private")
    return folder / "public"


def score(task: Competition, submission: Path, folder: Path) -> float:
    assert isinstance(task.metric.grader, str)
    grader = current().grader(task.metric.grader)
    result = grader.score(GradingInput(submission, folder / "private", task, task.metric.options))
    return result if isinstance(result, float) else result.value


def test_outlines_of_test_images_are_not_public(shared: Path, tmp_path: Path) -> None:
    public = prepared(fixed("hubmap-kidney-segmentation"), shared, tmp_path)
    names = {path.name for path in (public / "test").iterdir()}
    ids = pd.read_csv(public / "sample_submission.csv")["id"]
    assert names == {"sample_submission.csv"} | {
        f"{image}{end}" for image in ids for end in (".tiff", "-anatomical-structure.json")
    }
    assert all((public / "train" / f"{image}.json").is_file() for image in pd.read_csv(public / "train.csv")["id"])


def test_records_with_labels_of_the_test_are_not_public(shared: Path, tmp_path: Path) -> None:
    public = prepared(fixed("siim-isic-melanoma-classification"), shared, tmp_path)
    names = [path.name for path in (public / "tfrecords").iterdir()]
    assert len(names) == 14
    assert all(name.startswith("train") for name in names)


def test_maps_list_the_logs_of_their_part(shared: Path, tmp_path: Path) -> None:
    public = prepared(fixed("3d-object-detection-for-autonomous-vehicles"), shared, tmp_path)
    for part in ("train", "test"):
        (place,) = json.loads((public / f"{part}_data/map.json").read_text())
        logs = json.loads((public / f"{part}_data/log.json").read_text())
        assert sorted(place["log_tokens"]) == sorted(log["token"] for log in logs)
    samples = json.loads((public / "test_data/sample.json").read_text())
    assert samples
    assert not any("anns" in sample for sample in samples)


def test_patients_are_on_one_side_and_missing_votes_are_refused(shared: Path, tmp_path: Path) -> None:
    task = fixed("hms-harmful-brain-activity-classification")
    public = prepared(task, shared, tmp_path)
    train, test = pd.read_csv(public / "train.csv"), pd.read_csv(public / "test.csv")
    assert set(train["patient_id"]).isdisjoint(test["patient_id"])
    for part, rows in (("train", train), ("test", test)):
        assert {int(path.stem) for path in (public / f"{part}_eegs").iterdir()} == set(rows["eeg_id"])
    sample = pd.read_csv(public / "sample_submission.csv")
    assert score(task, tmp_path / "private" / "gold_submission.csv", tmp_path) == pytest.approx(0, abs=1e-9)
    flooded = sample.assign(**dict.fromkeys(sample.columns[1:], None)).assign(seizure_vote=1)
    flooded.to_csv(tmp_path / "missing.csv", index=False)
    with pytest.raises(InvalidSubmission):
        score(task, tmp_path / "missing.csv", tmp_path)


def test_games_are_on_one_side(shared: Path, tmp_path: Path) -> None:
    public = prepared(fixed("nfl-player-contact-detection"), shared, tmp_path)
    train, answers = pd.read_csv(public / "train_labels.csv"), pd.read_csv(tmp_path / "private" / "test.csv")
    assert list(train.columns) == list(answers.columns)
    assert "game" not in train
    games = [set(rows["game_play"].str.split("_").str[0]) for rows in (train, answers)]
    assert games[0] and games[1] and games[0].isdisjoint(games[1])


def test_most_studies_are_for_training(shared: Path, tmp_path: Path) -> None:
    public = prepared(fixed("rsna-2022-cervical-spine-fracture-detection"), shared, tmp_path)
    train, test = pd.read_csv(public / "train.csv"), pd.read_csv(public / "test.csv")
    studies = set(test["StudyInstanceUID"])
    assert len(train) / (len(train) + len(studies)) == pytest.approx(0.9, abs=0.02)
    assert studies.isdisjoint(train["StudyInstanceUID"])
    assert {path.stem for path in (public / "segmentations").iterdir()} <= {
        path.name for path in (public / "train_images").iterdir()
    }


def test_rows_of_scans_are_matched_by_id_and_class(shared: Path, tmp_path: Path) -> None:
    task = fixed("uw-madison-gi-tract-image-segmentation")
    prepared(task, shared, tmp_path)
    perfect = shared / "golden" / str(task.raw_id) / "submissions" / "perfect.csv"
    assert score(task, perfect, tmp_path) == pytest.approx(1)
    rows = pd.read_csv(perfect)
    rows[::-1].to_csv(tmp_path / "backwards.csv", index=False)
    assert score(task, tmp_path / "backwards.csv", tmp_path) == pytest.approx(1)
    rows.head(3).to_csv(tmp_path / "short.csv", index=False)
    with pytest.raises(InvalidSubmission):
        score(task, tmp_path / "short.csv", tmp_path)


def test_missing_predictions_of_breasts_are_refused(shared: Path, tmp_path: Path) -> None:
    task = fixed("rsna-breast-cancer-detection")
    public = prepared(task, shared, tmp_path)
    sample = pd.read_csv(public / "sample_submission.csv")
    sample.loc[0, "cancer"] = None
    sample.to_csv(tmp_path / "missing.csv", index=False)
    with pytest.raises(InvalidSubmission):
        score(task, tmp_path / "missing.csv", tmp_path)


def test_perfect_boxes_score_one(shared: Path, tmp_path: Path) -> None:
    task = fixed("vinbigdata-chest-xray-abnormalities-detection")
    prepared(task, shared, tmp_path)
    assert score(task, tmp_path / "private" / "gold_submission.csv", tmp_path) == pytest.approx(1)
    assert "width and height" not in task.describe() + task.describe(obfuscated=True)


def test_empty_masks_earn_nothing_where_there_is_salt(shared: Path, tmp_path: Path) -> None:
    task = fixed("tgs-salt-identification-challenge")
    public = prepared(task, shared, tmp_path)
    answers = pd.read_csv(tmp_path / "private" / "test.csv")
    answers.assign(rle_mask=None).to_csv(tmp_path / "empty.csv", index=False)
    assert score(task, tmp_path / "empty.csv", tmp_path) == pytest.approx(answers["rle_mask"].isna().mean())
    assert set(answers["id"]) <= set(pd.read_csv(public / "depths.csv")["id"])


def test_the_final_board_ranks_papyrus(shared: Path, tmp_path: Path) -> None:
    task = fixed("vesuvius-challenge-ink-detection")
    prepared(task, shared, tmp_path)
    assert task.thresholds is None
    assert task.leaderboard is None
    assert score(task, tmp_path / "private" / "gold_submission.csv", tmp_path) == pytest.approx(1)


def matlab_recordings(path: Path, name: str) -> None:
    """Recordings of one file each, a MATLAB structure as the competition has them."""
    frames = np.array([(np.arange(6.0).reshape(2, 3),), (np.ones((2, 3)),)], dtype=[("Skeleton", object)])
    labels = np.array([("vattene", 3, 40)], dtype=[("Name", object), ("Begin", object), ("End", object)])
    with tarfile.open(path / name, "w:gz") as archive:
        for number in pd.read_csv(path / "training.csv", dtype=str)["Id"].head(4):
            matlab, recording = io.BytesIO(), io.BytesIO()
            savemat(matlab, {"Video": {"NumFrames": 2, "FrameRate": 20, "Frames": frames, "Labels": labels}})
            with zipfile.ZipFile(recording, "w") as packed:
                packed.writestr(f"Sample0{number}_data.mat", matlab.getvalue())
                packed.writestr(f"Sample0{number}_audio.wav", b"sound")
            info = tarfile.TarInfo(f"Sample0{number}.zip")
            info.size = len(recording.getvalue())
            recording.seek(0)
            archive.addfile(info, recording)


def test_matlab_files_of_test_recordings_lose_their_labels_only(shared: Path, tmp_path: Path) -> None:
    task = fixed("multi-modal-gesture-recognition")
    matlab_recordings(unpacked(task, shared, tmp_path), "training4.tar.gz")
    public = prepared(task, shared, tmp_path)
    with tarfile.open(public / "test.tar.gz") as archive:
        names = archive.getnames()
        recording = zipfile.ZipFile(io.BytesIO(archive.extractfile(names[0]).read()))  # type: ignore[union-attr]
    assert sorted(name[-8:-4] for name in names) == list(pd.read_csv(public / "test.csv", dtype=str)["Id"])
    stem = names[0].removesuffix(".zip")
    assert recording.read(f"{stem}_audio.wav") == b"sound"
    video = loadmat(io.BytesIO(recording.read(f"{stem}_data.mat")))["Video"][0, 0]
    assert video["Labels"].size == 0
    assert video["FrameRate"] == 20
    assert video["Frames"]["Skeleton"][0, 0].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_recordings_without_readable_labels_end_the_preparation(shared: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="MATLAB"):
        prepared(fixed("multi-modal-gesture-recognition"), shared, tmp_path)
    assert not list((tmp_path / "public").iterdir())
