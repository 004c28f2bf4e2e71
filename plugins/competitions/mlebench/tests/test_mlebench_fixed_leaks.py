"""The variants `fixed` that leave out what gives answers away, and those that hold out what was torn apart."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import mleredux_competition_mlebench
import pandas as pd
import py7zr
import pytest
from mleredux._core.plugins import current
from mleredux._core.plugins.loader import resolve
from mleredux.errors import DataError, InvalidSubmission
from mleredux.models import Competition, GradingInput
from mleredux_competition_mlebench.blocks import Preparation

pytestmark = pytest.mark.shared

REFS = {ref.id: ref for ref in mleredux_competition_mlebench.mleredux_register_tasks()}


class Corrected:
    """The published task and its variant, prepared from the golden case's raw data."""

    def __init__(self, competition: str, golden: Path, folder: Path) -> None:
        self.published: Competition = resolve(REFS[competition])
        self.task: Competition = self.published.variants["fixed"](self.published)
        self.submissions, self.private, self.public = golden / "submissions", folder / "private", folder / "public"
        with zipfile.ZipFile(golden / "raw.zip") as packed:
            packed.extractall(folder / "raw")
        assert self.task.prepare is not None
        self.task.prepare(folder / "raw", self.public, self.private)
        self.answers = pd.read_csv(self.private / self.task.answers)

    def score(self, submission: Path, *, published: bool = False) -> float:
        task = self.published if published else self.task
        assert isinstance(task.metric.grader, str)
        grader = current().grader(task.metric.grader)
        result = grader.score(GradingInput(submission, self.private, task, task.metric.options))
        return result if isinstance(result, float) else result.value


@pytest.fixture
def corrected(request: pytest.FixtureRequest, shared: Path, tmp_path: Path) -> Corrected:
    return Corrected(request.param, shared / "golden" / request.param, tmp_path)


def of(competition: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("corrected", [competition], indirect=True, ids=[competition])


@pytest.mark.parametrize("competition", sorted(REFS))
def test_every_fixed_variant_says_what_was_wrong_and_what_was_done(competition: str) -> None:
    task: Competition = resolve(REFS[competition])
    if "fixed" in task.variants:
        variant = task.variants["fixed"]
        assert variant.wrong.endswith(".") and variant.done.endswith(".")
        note = variant(task).note
        assert note is not None and variant.done in note and "can't be compared" in note


def test_gestures_of_a_fixed_archive_have_no_private_split(shared: Path, tmp_path: Path) -> None:
    task: Competition = resolve(REFS["multi-modal-gesture-recognition"])
    assert isinstance(task.prepare, Preparation)
    with zipfile.ZipFile(shared / "golden" / task.id / "raw.zip") as packed:
        packed.extractall(tmp_path / "raw")
    with pytest.raises(DataError, match="has no random split"):
        task.prepare.with_settings(salt=b"secret")(tmp_path / "raw", tmp_path / "public", tmp_path / "private")


@of("random-acts-of-pizza")
def test_no_record_names_who_gave_a_pizza(corrected: Corrected) -> None:
    for part in ("train", "test"):
        records = json.loads((corrected.public / f"{part}.json").read_text())
        assert records and not any("giver_username_if_known" in record for record in records)
    assert "giver" not in corrected.task.describe()


@of("cassava-leaf-disease-classification")
def test_no_records_of_test_leaves_are_public(corrected: Corrected) -> None:
    assert any((corrected.public / "train_tfrecords").iterdir())
    assert not (corrected.public / "test_tfrecords").exists()
    assert {path.name for path in (corrected.public / "test_images").iterdir()} == set(corrected.answers["image_id"])
    assert "test_tfrecords" not in corrected.task.describe()


@of("seti-breakthrough-listen")
def test_the_withdrawn_signals_stay_away(corrected: Corrected) -> None:
    assert any((corrected.public / "train").iterdir())
    assert not (corrected.public / "old_leaky_data").exists()


@of("smartphone-decimeter-2022")
def test_no_track_of_a_test_drive_is_public(corrected: Corrected, tmp_path: Path) -> None:
    tracks = {part: list((corrected.public / part).rglob("span_log.nmea")) for part in ("train", "test")}
    assert tracks["train"] and not tracks["test"]
    corrected.answers[::-1].to_csv(tmp_path / "backwards.csv", index=False)
    assert corrected.score(tmp_path / "backwards.csv") == pytest.approx(0, abs=1e-6)
    with pytest.raises(InvalidSubmission):
        corrected.score(corrected.submissions / "times_wrong.csv")


@of("nomad2018-predict-transparent-conductors")
def test_materials_may_be_in_any_order(corrected: Corrected, tmp_path: Path) -> None:
    noisy, backwards = corrected.submissions / "noisy.csv", tmp_path / "backwards.csv"
    pd.read_csv(noisy)[::-1].to_csv(backwards, index=False)
    expected = corrected.score(noisy, published=True)
    assert corrected.score(backwards) == corrected.score(noisy) == pytest.approx(expected)
    assert corrected.score(backwards, published=True) != pytest.approx(expected)


@of("osic-pulmonary-fibrosis-progression")
def test_no_patient_can_be_left_out(corrected: Corrected) -> None:
    noisy = corrected.submissions / "noisy.csv"
    assert corrected.score(noisy) == pytest.approx(corrected.score(noisy, published=True))
    with pytest.raises(InvalidSubmission):
        corrected.score(corrected.submissions / "one_patient_only.csv")


@pytest.mark.parametrize(
    ("corrected", "column"),
    [("imet-2020-fgvc7", "attribute_ids"), ("plant-pathology-2021-fgvc8", "labels")],
    indirect=["corrected"],
)
def test_invented_labels_cost(corrected: Corrected, column: str, tmp_path: Path) -> None:
    padded = tmp_path / "padded.csv"
    corrected.answers.assign(**{column: corrected.answers[column].astype(str) + " invented"}).to_csv(
        padded, index=False
    )
    assert corrected.score(padded, published=True) == pytest.approx(1)
    assert corrected.score(padded) < 1


@of("statoil-iceberg-classifier-challenge")
def test_no_angle_is_on_both_sides(corrected: Corrected, tmp_path: Path) -> None:
    angles = []
    for part in ("train", "test"):
        with py7zr.SevenZipFile(corrected.public / f"{part}.json.7z") as archive:
            archive.extractall(tmp_path / part)
        records = json.loads((tmp_path / part / f"{part}.json").read_text())
        angles.append({record["inc_angle"] for record in records} - {"na"})
    assert angles[0] and angles[1] and not angles[0] & angles[1]


@of("tensorflow-speech-recognition-challenge")
def test_speakers_are_held_out_and_words_are_those_of_the_contest(corrected: Corrected, tmp_path: Path) -> None:
    commands = {"yes", "no", "up", "down", "left", "right", "on", "off", "stop", "go"}
    assert set(corrected.answers["label"]) <= {*commands, "unknown"}
    with py7zr.SevenZipFile(tmp_path / "raw" / "train.7z") as archive:
        raw = [name for name in archive.getnames() if name.endswith(".wav")]
    kept = list((corrected.public / "train" / "audio").rglob("*.wav"))
    everyone = {name.rsplit("/", 1)[1].partition("_")[0] for name in raw if "_background_noise_" not in name}
    speakers = {path.name.partition("_")[0] for path in kept if path.parent.name != "_background_noise_"}
    held_out = [name for name in raw if name.rsplit("/", 1)[1].partition("_")[0] in everyone - speakers]
    assert len(kept) + len(held_out) == len(raw)
    assert len(held_out) == len(corrected.answers)


@of("hotel-id-2021-fgvc8")
def test_no_visit_of_a_hotel_is_on_both_sides(corrected: Corrected, tmp_path: Path) -> None:
    train, raw = pd.read_csv(corrected.public / "train.csv"), pd.read_csv(tmp_path / "raw" / "train.csv")
    assert list(train.columns) == list(raw.columns)
    test = raw[raw["image"].isin(corrected.answers["image"])]
    visits = [set(zip(rows["hotel_id"], rows["timestamp"], strict=True)) for rows in (train, test)]
    assert visits[1] and not visits[0] & visits[1]


@of("kuzushiji-recognition")
def test_no_book_is_on_both_sides(corrected: Corrected) -> None:
    train = pd.read_csv(corrected.public / "train.csv")
    books = [set(rows["image_id"].str.split("[-_]").str[0]) for rows in (train, corrected.answers)]
    assert books[0] and books[1] and not books[0] & books[1]
    assert corrected.score(corrected.private / "gold_submission.csv") == pytest.approx(1)
    crowded = corrected.answers.assign(labels=" ".join(["U+003F 1 1"] * 1201))
    crowded.to_csv(corrected.private / "crowded.csv", index=False)
    assert corrected.score(corrected.private / "crowded.csv", published=True) == pytest.approx(0, abs=0.1)
    with pytest.raises(InvalidSubmission, match="1,201 points; a page may have at most 1,200"):
        corrected.score(corrected.private / "crowded.csv")


@of("champs-scalar-coupling")
def test_molecules_of_the_test_have_a_shape(corrected: Corrected, tmp_path: Path) -> None:
    wanted = set(pd.read_csv(corrected.public / "test.csv")["molecule_name"])
    assert wanted <= set(pd.read_csv(corrected.public / "structures.csv")["molecule_name"])
    assert wanted <= {path.stem for path in (corrected.public / "structures").iterdir()}
    assert not wanted & set(pd.read_csv(corrected.public / "dipole_moments.csv")["molecule_name"])
    corrected.answers.iloc[[0, *range(len(corrected.answers))]].to_csv(tmp_path / "twice.csv", index=False)
    with pytest.raises(InvalidSubmission):
        corrected.score(tmp_path / "twice.csv")


@of("google-quest-challenge")
def test_no_question_is_on_both_sides(corrected: Corrected) -> None:
    train, test = (pd.read_csv(corrected.public / f"{part}.csv") for part in ("train", "test"))
    assert len(test) and not set(train["question_body"]) & set(test["question_body"])
    assert corrected.score(corrected.private / corrected.task.answers) == pytest.approx(1)


@of("3d-object-detection-for-autonomous-vehicles")
def test_boxes_of_classes_that_a_sample_lacks_cost(corrected: Corrected, tmp_path: Path) -> None:
    assert corrected.score(corrected.private / corrected.task.answers) == pytest.approx(1)
    flooded = corrected.answers.assign(
        PredictionString=corrected.answers["PredictionString"] + " 0.01 0 0 0 1 1 1 0 moose"
    )
    flooded.to_csv(tmp_path / "flooded.csv", index=False)
    assert corrected.score(tmp_path / "flooded.csv", published=True) == pytest.approx(1)
    assert corrected.score(tmp_path / "flooded.csv") < 0.9


@of("uw-madison-gi-tract-image-segmentation")
def test_confused_organs_are_far_from_each_other(corrected: Corrected, tmp_path: Path) -> None:
    assert corrected.score(corrected.private / corrected.task.answers) == pytest.approx(1)
    confused = corrected.answers.assign(
        predicted=corrected.answers.groupby("id")["predicted"].transform(lambda row: row[::-1].array)
    )
    confused.to_csv(tmp_path / "confused.csv", index=False)
    assert corrected.score(tmp_path / "confused.csv") < corrected.score(tmp_path / "confused.csv", published=True) - 0.1


@of("vinbigdata-chest-xray-abnormalities-detection")
def test_all_boxes_of_radiographs_can_be_found(corrected: Corrected) -> None:
    assert corrected.score(corrected.private / "gold_submission.csv") == pytest.approx(1)
    assert corrected.score(corrected.private / "gold_submission.csv", published=True) < 1


@of("siim-covid19-detection")
def test_missed_opacities_have_no_base_rate(corrected: Corrected, tmp_path: Path) -> None:
    assert corrected.score(corrected.private / corrected.task.answers) == pytest.approx(1)
    corrected.answers.assign(PredictionString="moose 1 0 0 1 1").to_csv(tmp_path / "nothing.csv", index=False)
    assert corrected.score(tmp_path / "nothing.csv", published=True) > 0.1
    assert corrected.score(tmp_path / "nothing.csv") == 0
