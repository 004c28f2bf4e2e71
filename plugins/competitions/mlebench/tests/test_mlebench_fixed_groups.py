"""The variants `fixed` that hold out what belongs together, and those that give back what was lost."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from pathlib import Path

import mleredux_competition_mlebench
import numpy as np
import pandas as pd
import pytest
from mleredux._core.plugins.loader import resolve
from mleredux.models import Competition
from mleredux_competition_mlebench.blocks import Preparation
from mleredux_competition_mlebench.blocks.likeness import image_hashes, linked
from mleredux_competition_mlebench.blocks.trees import Folder
from mleredux_competition_mlebench.competitions.stanford_covid_vaccine import families

REFS = {ref.id: ref for ref in mleredux_competition_mlebench.mleredux_register_tasks()}


class Prepared:
    """The raw data of a golden case, prepared as published and corrected."""

    def __init__(self, competition: str, shared: Path, folder: Path) -> None:
        self.published: Competition = resolve(REFS[competition])
        self.fixed: Competition = self.published.variants["fixed"](self.published)
        self.raw, self.folder = folder / "raw", folder
        with zipfile.ZipFile(shared / "golden" / competition / "raw.zip") as packed:
            packed.extractall(self.raw)
        expected = json.loads((shared / "golden" / competition / "expected.json").read_text())
        self.test_size = (expected.get("overrides") or {}).get("test_size")

    def prepare(self, *, published: bool = False) -> tuple[Path, Path]:
        """The public and the private folder."""
        task = self.published if published else self.fixed
        assert isinstance(task.prepare, Preparation)
        place = self.folder / task.id
        task.prepare.with_settings(test_size=self.test_size)(self.raw, place / "public", place / "private")
        return place / "public", place / "private"


@pytest.fixture
def case(request: pytest.FixtureRequest, shared: Path, tmp_path: Path) -> Prepared:
    return Prepared(request.param, shared, tmp_path)


def of(competition: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", [competition], indirect=True, ids=[competition])


def zipped_csv(path: Path) -> list[dict[str, str]]:
    with zipfile.ZipFile(path) as packed, packed.open(packed.namelist()[0]) as member:
        return list(csv.DictReader(io.TextIOWrapper(member, "utf-8", newline="")))


def picture(path: Path, seed: int, size: tuple[int, int] = (340, 320), quality: int = 90) -> None:
    from PIL import Image

    cells = np.random.default_rng(seed).integers(0, 256, (16, 17), dtype=np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(cells).resize(size).save(path, quality=quality)


def test_copies_of_a_picture_look_the_same_in_other_sizes_and_qualities(tmp_path: Path) -> None:
    picture(tmp_path / "a.jpg", 1)
    picture(tmp_path / "small.jpg", 1, (170, 160), 60)
    picture(tmp_path / "b.jpg", 2)
    (tmp_path / "none.jpg").write_bytes(b"no picture")
    found = image_hashes(Folder(tmp_path, "pictures"), ["a.jpg", "small.jpg", "b.jpg", "none.jpg"])
    a, small, b, none = linked(found, 0.94)
    assert a == small
    assert len({a, b, none}) == 3


def test_copies_of_pictures_are_held_out_together(tmp_path: Path) -> None:
    task: Competition = resolve(REFS["petfinder-pawpularity-score"])
    names = [f"{number}" for number in range(100, 160)]
    for number, name in enumerate(names):
        picture(tmp_path / "raw/train" / f"{name}.jpg", number // 2, quality=90 - number % 2 * 20)
    pd.DataFrame({"Id": names, "Pawpularity": 50}).to_csv(tmp_path / "raw/train.csv", index=False)
    fixed = task.variants["fixed"](task)
    assert fixed.prepare is not None
    fixed.prepare(tmp_path / "raw", tmp_path / "public", tmp_path / "private")
    train, test = (set(pd.read_csv(tmp_path / f"public/{part}.csv")["Id"] // 2) for part in ("train", "test"))
    assert len(test) == 3
    assert not train & test


@pytest.mark.shared
@of("dogs-vs-cats-redux-kernels-edition")
def test_the_draw_follows_from_the_raw_pictures(case: Prepared) -> None:
    answers = [pd.read_csv(case.prepare(published=published)[1] / "answers.csv") for published in (True, False)]
    assert not answers[0].equals(answers[1])
    with zipfile.ZipFile(case.raw / "train.zip") as packed:
        members = {info.filename: packed.read(info) for info in packed.infolist()}
    with zipfile.ZipFile(case.raw / "train.zip", "w") as packed:
        for number, (name, data) in enumerate(members.items()):
            packed.writestr(name, data + bytes(0 if name.endswith("/") else number % 3))
    case.folder = case.folder / "others"
    assert not pd.read_csv(case.prepare()[1] / "answers.csv").equals(answers[1])


@pytest.mark.shared
@of("invasive-species-monitoring")
def test_pictures_of_plants_can_be_seen(case: Prepared) -> None:
    public, private = case.prepare()
    answers = pd.read_csv(private / "answers.csv")
    assert {int(path.stem) for path in (public / "test").iterdir()} == set(answers["name"])
    assert not (public / "test.7z").exists()
    assert "empty" not in case.fixed.describe()


@pytest.mark.shared
@of("hms-harmful-brain-activity-classification")
def test_windows_of_brain_waves_have_names(case: Prepared) -> None:
    public, private = case.prepare()
    test, gold = pd.read_csv(public / "test.csv"), pd.read_csv(private / "gold_submission.csv")
    assert test["label_id"].is_unique
    assert list(gold["label_id"]) == list(test["label_id"])
    assert case.fixed.submission.id_columns == ("label_id",)
    assert not set(test["patient_id"]) & set(pd.read_csv(public / "train.csv")["patient_id"])


@pytest.mark.shared
@of("ranzcr-clip-catheter-line-classification")
def test_all_eleven_labels_of_catheters_are_scored(case: Prepared) -> None:
    public, private = case.prepare()
    sample = pd.read_csv(public / "sample_submission.csv")
    assert len(sample.columns) == 12
    assert set(sample.columns) <= set(pd.read_csv(private / "test.csv").columns)


@pytest.mark.shared
@of("rsna-miccai-brain-tumor-radiogenomic-classification")
def test_cases_with_faulty_images_are_left_out(case: Prepared) -> None:
    public, private = case.prepare()
    tables = [pd.read_csv(path, dtype=str) for path in (public / "train_labels.csv", private / "test.csv")]
    assert "00109" in (case.raw / "train_labels.csv").read_text()
    assert not {"00109", "00123", "00709"} & set(pd.concat(tables)["BraTS21ID"])


@pytest.mark.shared
@of("hubmap-kidney-segmentation")
def test_no_donor_of_a_kidney_is_on_both_sides(case: Prepared) -> None:
    public, private = case.prepare()
    facts = pd.read_csv(case.raw / "HuBMAP-20-dataset_information.csv")
    donors = dict(zip(facts["image_file"].str.removesuffix(".tiff"), facts["patient_number"], strict=True))
    train, test = (set(pd.read_csv(path)["id"].map(donors)) for path in (public / "train.csv", private / "test.csv"))
    assert train and test and not train & test


@pytest.mark.shared
@of("siim-isic-melanoma-classification")
def test_no_patient_with_a_lesion_is_on_both_sides(case: Prepared) -> None:
    public, _ = case.prepare()
    train, test = pd.read_csv(public / "train.csv"), pd.read_csv(public / "test.csv")
    assert not set(train["patient_id"]) & set(test["patient_id"])
    assert len(list((public / "jpeg/test").iterdir())) == len(test)
    assert not (public / "tfrecords").exists()


@pytest.mark.shared
@of("siim-covid19-detection")
def test_no_patient_with_radiographs_is_on_both_sides(case: Prepared) -> None:
    from pydicom.dataset import FileDataset, FileMetaDataset
    from pydicom.uid import UID, ExplicitVRLittleEndian

    for number, path in enumerate(sorted((case.raw / "train").rglob("*.dcm"))):
        meta = FileMetaDataset()
        meta.MediaStorageSOPClassUID = meta.MediaStorageSOPInstanceUID = UID(f"1.2.{number}")
        meta.TransferSyntaxUID = ExplicitVRLittleEndian
        image = FileDataset(str(path), {}, file_meta=meta, preamble=bytes(128))
        image.PatientID = f"patient {path.relative_to(case.raw / 'train').parts[0][0]}"
        image.InstanceNumber = number
        image.save_as(path, enforce_file_format=True)
    public, _ = case.prepare()
    train, test = ({path.name[0] for path in (public / part).iterdir()} for part in ("train", "test"))
    assert train and test and not train & test


@pytest.mark.shared
@of("mlsp-2013-birds")
def test_recordings_of_a_site_and_day_are_held_out_together(case: Prepared) -> None:
    public, _ = case.prepare()
    data = public / "essential_data"
    names = pd.read_csv(data / "rec_id2filename.txt").merge(pd.read_csv(data / "CVfolds_2.txt"))
    days = names["filename"].str.split("_").str[:2].str.join("_")
    assert not set(days[names["fold"] == 0]) & set(days[names["fold"] == 1])


@pytest.mark.shared
@of("text-normalization-challenge-english-language")
def test_equal_sentences_are_held_out_together_and_words_stay(case: Prepared) -> None:
    path = case.raw / "en_train.csv.zip"
    rows = zipped_csv(path)
    last = max(int(row["sentence_id"]) for row in rows)
    again = [
        {**row, "sentence_id": str(int(row["sentence_id"]) + last + 1)} for row in [*rows, dict(rows[0], before="null")]
    ]
    table = pd.DataFrame([*rows, *again])
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("en_train.csv", table.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC))
    public, _ = case.prepare()
    sides = []
    for name in ("en_train.csv.zip", "en_test_2.csv.zip"):
        found = pd.DataFrame(zipped_csv(public / name))
        sides.append(found.groupby("sentence_id")["before"].agg(" ".join))
    assert not set(sides[0]) & set(sides[1])
    assert any("null" in sentence.split() for side in sides for sentence in side)


@pytest.mark.shared
@of("billion-word-imputation")
def test_sentences_of_the_test_train_nowhere(case: Prepared) -> None:
    path = case.raw / "train_v2.txt.zip"
    with zipfile.ZipFile(path) as packed:
        lines = packed.read("train_v2.txt").decode().splitlines(keepends=True)
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("train_v2.txt", "".join(lines * 2))
    for published in (True, False):
        public, private = case.prepare(published=published)
        asked = set(pd.read_csv(private / "test.csv")["sentence"])
        with zipfile.ZipFile(public / "train_v2.txt.zip") as packed:
            train = {line.strip() for line in packed.read("train_v2.txt").decode().splitlines()}
        assert bool(asked & train) is published


@pytest.mark.shared
@of("denoising-dirty-documents")
def test_clean_pages_of_the_test_are_not_in_training(case: Prepared) -> None:
    with zipfile.ZipFile(case.raw / "train_cleaned.zip") as packed:
        members = {name: packed.read(name) for name in sorted(packed.namelist()) if name.endswith(".png")}
    names = list(members)
    with zipfile.ZipFile(case.raw / "train_cleaned.zip", "w") as packed:
        for place, name in enumerate(names):
            packed.writestr(name, members[names[place // 3 * 3]])
    public, _ = case.prepare()
    train = {path.read_bytes() for path in (public / "train_cleaned").iterdir()}
    test = {path.name for path in (public / "test").iterdir()}
    assert test
    assert not {members[names[names.index(f"train_cleaned/{name}") // 3 * 3]] for name in test} & train


@pytest.mark.shared
@of("tensorflow2-question-answering")
def test_articles_are_held_out_whole(case: Prepared) -> None:
    raw = [json.loads(line) for line in (case.raw / "simplified-nq-train.jsonl").read_text().splitlines()]
    article = {str(record["example_id"]): record["document_url"] for record in raw}
    public, private = case.prepare()
    sides = [
        {str(json.loads(line)["example_id"]) for line in path.read_text().splitlines()}
        for path in (public / "simplified-nq-train.jsonl", private / "test.jsonl")
    ]
    assert len(sides[0]) + len(sides[1]) == len(raw)
    assert sides[1]
    assert not {article[name] for name in sides[0]} & {article[name] for name in sides[1]}


def test_families_join_molecules_that_are_nearly_the_same() -> None:
    sequences = pd.Series(["GGAAAACCUU", "GGAAAACCUG", "GGAAAACCCG", "UUUUUUUUUU", "GGAAAACCUU"], index=[5, 6, 7, 8, 9])
    found = families(sequences)
    assert found[5] == found[6] == found[7] == found[9] != found[8]


@pytest.mark.shared
@of("AI4Code")
def test_origins_of_notebooks_are_drawn_evenly(case: Prepared) -> None:
    public, private = case.prepare()
    ancestors = pd.read_csv(case.raw / "train_ancestors.csv").set_index("id")["ancestor_id"]
    train, test = (
        set(pd.read_csv(path)["id"].map(ancestors))
        for path in (public / "train_orders.csv", private / "test_orders.csv")
    )
    assert train and test and not train & test


@pytest.mark.shared
def test_every_species_of_leaf_is_asked_for(shared: Path, tmp_path: Path) -> None:
    task: Competition = resolve(REFS["leaf-classification"])
    (tmp_path / "raw").mkdir()
    with zipfile.ZipFile(shared / "data/kaggle/leaf-classification/leaf-classification.zip") as packed:
        packed.extractall(tmp_path / "raw")
    fixed = task.variants["fixed"](task)
    assert fixed.prepare is not None
    fixed.prepare(tmp_path / "raw", tmp_path / "public", tmp_path / "private")
    answers = pd.read_csv(tmp_path / "private/test.csv").drop(columns="id")
    assert (answers.sum() == 1).all()
    assert len(answers.columns) == 99


@pytest.mark.shared
@of("tweet-sentiment-extraction")
def test_words_that_read_like_missing_values_stay(case: Prepared) -> None:
    table = pd.read_csv(case.raw / "train.csv", keep_default_na=False)
    table["selected_text"] = "null"
    table.to_csv(case.raw / "train.csv", index=False)
    public, _ = case.prepare()
    train = pd.read_csv(public / "train.csv", keep_default_na=False)
    assert (train["selected_text"] == "null").all()
