"""The leaks published of MLE-bench's competitions, in made-up data of their shape at a size where they can be seen.

Each shape is the layout that the preparation leaves, under the competition's own declaration. It is audited twice:
as published, where the leak must be found, and with the leak taken out, where nothing severe may be said.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import py7zr
import pydicom
import pytest
from mleredux.plugins import Catalogue
from mleredux_audit.audit import audit
from mleredux_audit.report import AuditReport

Rng = np.random.Generator
Shape = Callable[["Folders", Rng, bool], None]


class Folders:
    """A prepared directory to be."""

    def __init__(self, root: Path) -> None:
        self.public, self.private = root / "public", root / "private"

    def put(self, name: str, content: Any, side: str = "public") -> None:
        path = getattr(self, side) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, pd.DataFrame):
            content.to_csv(path, index=False)
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def answers(self, frame: pd.DataFrame, name: str = "test.csv") -> None:
        self.put(name, frame, "private")


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return Catalogue()


@pytest.fixture
def look(catalogue: Catalogue, tmp_path: Path) -> Callable[[str, Shape, bool], AuditReport]:
    def look(task: str, shape: Shape, leaky: bool) -> AuditReport:
        folders = Folders(tmp_path)
        shape(folders, np.random.default_rng(0), leaky)
        return audit(catalogue.task(task), folders.public, folders.private)

    return look


def names(rng: Rng, count: int, length: int = 9) -> list[str]:
    """Ids of hexadecimal digits."""
    return ["".join(row) for row in rng.choice(list("0123456789abcdef"), (count, length))]


VOCABULARY = names(np.random.default_rng(1), 4000, 6)


def words(rng: Rng, count: int) -> str:
    return " ".join([VOCABULARY[place] for place in rng.integers(len(VOCABULARY), size=count)])


def npy(array: np.ndarray) -> bytes:
    kept = io.BytesIO()
    np.save(kept, array)
    return kept.getvalue()


def picture(rng: Rng, side: int = 64) -> Any:
    from PIL import Image

    return Image.fromarray(rng.integers(256, size=(7, 7), dtype=np.uint8)).resize((side, side))


def jpeg(image: Any, quality: int) -> bytes:
    kept = io.BytesIO()
    image.save(kept, "JPEG", quality=quality)
    return kept.getvalue()


def frames_of_speech(put: Folders, rng: Rng, leaky: bool) -> None:
    """Windows of 11 frames, 13 features each; the label is the middle frame's. Rows (or utterances) split at random."""
    windows, labels, utterance = [], [], []
    sounds = rng.normal(size=(39, 13))
    for number in range(30):
        classes = np.repeat(rng.integers(39, size=12), rng.integers(3, 9, 12))
        frames = sounds[classes] + rng.normal(size=(len(classes), 13))
        for place in range(5, len(classes) - 5):
            windows.append(frames[place - 5 : place + 6].ravel())
            labels.append(classes[place])
            utterance.append(number)
    test = rng.random(len(windows)) < 0.2 if leaky else np.array(utterance) >= 24
    order = rng.permutation(len(windows))
    data, kinds, test = np.array(windows, np.float32)[order], np.array(labels)[order], test[order]
    put.put("timit_11/timit_11/train_11.npy", npy(data[~test]))
    put.put("timit_11/timit_11/train_label_11.npy", npy(kinds[~test].astype(str)))
    put.put("timit_11/timit_11/test_11.npy", npy(data[test]))
    answers = pd.DataFrame({"Id": range(int(test.sum())), "ClassId": kinds[test]})
    put.answers(answers, "answers.csv")
    put.put("sampleSubmission.csv", answers.assign(ClassId=0))


def records(put: Folders, rng: Rng, leaky: bool) -> None:
    """TFRecords of the test that are the training ones."""
    import struct

    def field(number: int, body: bytes) -> bytes:
        return bytes([number << 3 | 2]) + bytes([len(body)]) + body

    ids = [f"ISIC_{number:07d}" for number in rng.permutation(10**7)[:400]]
    target = (rng.random(400) < 0.2).astype(int)
    for part in range(2):
        content = b""
        for row in range(part, 400, 2):
            features = field(1, field(1, b"image_name") + field(2, field(1, field(1, ids[row].encode()))))
            if leaky:
                value = field(2, field(3, field(1, bytes([target[row]]))))
                features += field(1, field(1, b"target") + value)
            record = field(1, features)
            content += struct.pack("<Q", len(record)) + bytes(4) + record + bytes(4)
        put.put(f"tfrecords/test{part:02d}-2071.tfrec", content)
    answers = pd.DataFrame({"image_name": ids, "target": target})
    put.answers(answers)
    put.put("sample_submission.csv", answers.assign(target=0))
    age = rng.integers(20, 80, 400)
    put.put("test.csv", answers[["image_name"]].assign(age_approx=age))


def polygons(put: Folders, rng: Rng, leaky: bool) -> None:
    """Three pictures, each with a GeoJSON of what is to be outlined (or of places that have nothing to do with it)."""
    rows, info = [], []
    for name in names(rng, 3):
        height, width = int(rng.integers(900, 1500)), int(rng.integers(900, 1500))
        mask = np.zeros((height, width), dtype=bool)
        features = []
        for _ in range(25):
            x, y = rng.integers(10, width - 60), rng.integers(10, height - 60)
            mask[y : y + 40, x : x + 40] = True
            at = (x, y) if leaky else (rng.integers(10, width - 60), rng.integers(10, height - 60))
            ring = [[int(at[0]) + a, int(at[1]) + b] for a, b in ((0, 0), (39, 0), (39, 39), (0, 39), (0, 0))]
            features.append({"type": "Feature", "geometry": {"type": "Polygon", "coordinates": [ring]}})
        put.put(f"test/{name}.json", json.dumps(features))
        put.put(f"test/{name}.tiff", rng.bytes(500))
        edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.T.ravel().astype(int), [0]])))
        runs = " ".join(f"{begin + 1} {end - begin}" for begin, end in edges.reshape(-1, 2))
        rows.append((name, runs, width, height))
        info.append((f"{name}.tiff", width, height))
    put.answers(pd.DataFrame(rows, columns=["id", "encoding", "width_pixels", "height_pixels"]))
    put.put(
        "HuBMAP-20-dataset_information.csv", pd.DataFrame(info, columns=["image_file", "width_pixels", "height_pixels"])
    )
    put.put("sample_submission.csv", pd.DataFrame({"id": [row[0] for row in rows], "predicted": ""}))


def walk(rng: Rng) -> np.ndarray:
    """Latitudes and longitudes of a drive."""
    return np.asarray(np.cumsum(rng.normal(0, 2e-4, (200, 2)), axis=0) + np.array([37.3, -122.1]))


def reference_track(put: Folders, rng: Rng, leaky: bool) -> None:
    """Drives with a log of the reference receiver (or of another drive's) beside the phone's own data."""
    found = []
    for drive in range(4):
        way = walk(rng)
        trip, times = f"2021-08-0{drive + 1}-US-MTV-1-Pixel5", 1_620_000_000_000 + np.arange(200) * 1000
        found.append(pd.DataFrame({"tripId": trip, "UnixTimeMillis": times}))
        found[-1][["LatitudeDegrees", "LongitudeDegrees"]] = way.round(10)
        told = way if leaky else walk(rng)
        lines = []
        for second, (north, east) in enumerate(told):
            parts = [f"{int(abs(v))}{(abs(v) % 1) * 60:010.7f}" for v in (north, east)]
            lines.append(f"$GPGGA,1200{second % 60:02d}.00,{parts[0]},N,0{parts[1]},W,4,12,0.6,10.0,M,,M,,*5A")
        folder = f"test/{trip[:-7]}/Pixel5"
        put.put(f"{folder}/supplemental/span_log.nmea", "\n".join(lines) + "\n")
        # What an agent has to work with lies within some metres of the truth, and is no leak.
        noisy = pd.DataFrame(np.repeat(way, 3, axis=0) + rng.normal(0, 3e-5, (600, 2)), columns=["Lat", "Lng"])
        put.put(f"{folder}/device_gnss.csv", noisy.assign(utcTimeMillis=np.repeat(times, 3)))
    answers = pd.concat(found, ignore_index=True)
    put.answers(answers)
    rough = answers.assign(LatitudeDegrees=37.3, LongitudeDegrees=-122.1)
    put.put("sample_submission.csv", rough)


def angles_of_scenes(put: Folders, rng: Rng, leaky: bool) -> None:
    """Pictures in 7z archives; an equal angle of incidence means one scene, and one label (or nothing)."""
    scenes = rng.uniform(30, 45, 160).round(4)
    of_scene = rng.integers(2, size=160)
    scene = rng.integers(160, size=500)
    label = of_scene[scene] if leaky else rng.integers(2, size=500)
    ids = names(rng, 500, 8)
    rows = [
        {"id": ids[n], "band_1": rng.normal(-20, 5, 30).round(6).tolist(), "inc_angle": scenes[scene[n]]}
        for n in range(500)
    ]
    train = [{**row, "is_iceberg": int(label[n])} for n, row in enumerate(rows[:400])]
    answers = pd.DataFrame({"id": ids[400:], "is_iceberg": label[400:]})
    sample = answers.assign(is_iceberg=0.5).to_csv(index=False)
    for name, content in {
        "train.json": json.dumps(train),
        "test.json": json.dumps(rows[400:]),
        "sample_submission.csv": sample,
    }.items():
        kept = io.BytesIO()
        with py7zr.SevenZipFile(kept, "w") as archive:
            archive.writestr(content, f"data/processed/{name}")
        put.put(f"{name}.7z", kept.getvalue())
    put.answers(answers)
    put.put("sample_submission.csv", sample, "private")


def pizza(put: Folders, rng: Rng, leaky: bool) -> None:
    """Requests as JSON; a giver is known only of those that were granted. The same file lies there packed, too."""
    import zipfile

    got = rng.random(1500) < 0.25
    known = got & (rng.random(1500) < 0.3) if leaky else np.zeros(1500, dtype=bool)
    rows = [
        {
            "request_id": f"t3_{name}",
            "giver_username_if_known": f"giver{place}" if known[place] else "N/A",
            "request_text_edit_aware": words(rng, 20),
            "requester_account_age_in_days_at_request": round(rng.exponential(200), 4),
        }
        for place, name in enumerate(names(rng, 1500, 6))
    ]
    train = [{**row, "requester_received_pizza": bool(got[place])} for place, row in enumerate(rows[:1100])]
    for name, content in (("train", train), ("test", rows[1100:])):
        put.put(f"{name}.json", json.dumps(content))
        kept = io.BytesIO()
        with zipfile.ZipFile(kept, "w") as archive:
            archive.writestr(f"{name}.json", json.dumps(content))
        put.put(f"{name}.zip", kept.getvalue())
    ids = [row["request_id"] for row in rows[1100:]]
    answers = pd.DataFrame({"request_id": ids, "requester_received_pizza": got[1100:].astype(int)})
    put.answers(answers)
    put.put("sampleSubmission.csv", answers.assign(requester_received_pizza=0))


def tables(
    put: Folders, frame: pd.DataFrame, split: np.ndarray, key: str, targets: list[str], answers: str = "test.csv"
) -> None:
    """`train.csv` and `test.csv` by a split, the answers, and a sample of noughts."""
    put.put("train.csv", frame[~split])
    put.put("test.csv", frame[split].drop(columns=targets))
    put.answers(frame[split][[key, *targets]], answers)
    sample = frame[split][[key]].assign(**dict.fromkeys(targets, 0))
    put.put("sampleSubmission.csv" if answers == "answers.csv" else "sample_submission.csv", sample)


def phrases(put: Folders, rng: Rng, leaky: bool) -> None:
    """Phrases of sentences, split by phrase (or by sentence)."""
    sentence = np.repeat(np.arange(300), 8)
    frame = pd.DataFrame({"PhraseId": np.arange(1, 2401), "SentenceId": sentence + 1})
    frame["Phrase"] = [words(rng, 4) for _ in range(2400)]
    mood = rng.integers(5, size=300)[sentence]
    frame["Sentiment"] = np.where(rng.random(2400) < 0.6, mood, 2)
    tables(put, frame, rng.random(2400) < 0.2 if leaky else sentence >= 240, "PhraseId", ["Sentiment"], "answers.csv")


def anchors(put: Folders, rng: Rng, leaky: bool) -> None:
    """Pairs of phrases; the same anchor with many targets."""
    number = rng.integers(120, size=1500)
    anchor = np.array([words(rng, 2) for _ in range(120)])
    frame = pd.DataFrame({"id": names(rng, 1500, 16), "anchor": anchor[number]})
    frame["target"] = [words(rng, 2) for _ in range(1500)]
    frame["score"] = rng.choice([0, 0.25, 0.5, 0.75, 1], 1500)
    tables(put, frame, rng.random(1500) < 0.1 if leaky else number >= 100, "id", ["score"])


def questions(put: Folders, rng: Rng, leaky: bool) -> None:
    """Questions with one or two answers each; labels of the question are the same for both."""
    number = np.arange(900) % 500
    body = np.array([words(rng, 25) for _ in range(500)])
    frame = pd.DataFrame({"qa_id": rng.permutation(9000)[:900], "question_body": body[number]})
    frame["answer"] = [words(rng, 25) for _ in range(900)]
    targets = list(Catalogue().task("google-quest-challenge").submission.target_columns)
    for target in targets:
        own = rng.choice([0, 1 / 3, 2 / 3, 1], 500)[number]
        frame[target] = own if target.startswith("question") else rng.choice([0, 0.5, 1], 900)
    tables(put, frame, rng.random(900) < 0.1 if leaky else number >= 450, "qa_id", targets)


def articles(put: Folders, rng: Rng, leaky: bool) -> None:
    """Questions about articles, several to each."""
    number = rng.integers(150, size=600)
    text = [words(rng, 80) for _ in range(150)]
    frame = pd.DataFrame({"id": names(rng, 600), "context": [text[n] for n in number]})
    frame["question"] = [words(rng, 6) + "?" for _ in range(600)]
    begin = rng.integers(70, size=600)
    frame["PredictionString"] = [
        " ".join(row.split()[at : at + 3]) for row, at in zip(frame["context"], begin, strict=True)
    ]
    test = rng.random(600) < 0.15 if leaky else number >= 130
    train = frame[~test].rename(columns={"PredictionString": "answer_text"})
    put.put("train.csv", train)
    put.put("test.csv", frame[test].drop(columns="PredictionString"))
    put.answers(frame[test][["id", "PredictionString"]])
    put.put("sample_submission.csv", frame[test][["id"]].assign(PredictionString="dummy text"))


def pages(put: Folders, rng: Rng, leaky: bool) -> None:
    """Questions about web pages as JSON lines; answers are spans, two rows for each question."""
    number = rng.integers(120, size=500)
    text = [words(rng, 60) for _ in range(120)]
    ids = [str(v) for v in rng.integers(-(2**62), 2**62, 500)]
    rows = [
        {
            "example_id": ids[n],
            "question_text": words(rng, 5),
            "document_text": text[number[n]],
            "document_url": f"https://wiki/{number[n]}",
        }
        for n in range(500)
    ]
    test = rng.random(500) < 0.15 if leaky else number >= 100
    put.put("simplified-nq-train.jsonl", "\n".join(json.dumps(row) for n, row in enumerate(rows) if not test[n]))
    put.put("simplified-nq-test.jsonl", "\n".join(json.dumps(row) for n, row in enumerate(rows) if test[n]))
    noted = [{**row, "annotations": [{"start": int(rng.integers(9))}]} for n, row in enumerate(rows) if test[n]]
    put.put("test.jsonl", "\n".join(json.dumps(row) for row in noted), "private")
    made = [f"{row['example_id']}_{kind}" for row in noted for kind in ("long", "short")]
    put.put("sample_submission.csv", pd.DataFrame({"example_id": made, "PredictionString": ""}))


def patients_in_a_table(put: Folders, rng: Rng, leaky: bool) -> None:
    """Radiographs of patients with several; only the answers say whose those of the test are."""
    patient = rng.integers(150, size=900)
    frame = pd.DataFrame({"StudyInstanceUID": [f"1.2.826.0.1.{v}" for v in rng.permutation(10**6)[:900]]})
    targets = list(Catalogue().task("ranzcr-clip-catheter-line-classification").submission.target_columns)
    for target in targets:
        frame[target] = (rng.random(900) < 0.3).astype(int)
    frame["PatientID"] = np.array(names(rng, 150))[patient]
    test = rng.random(900) < 0.15 if leaky else patient >= 120
    put.put("train.csv", frame[~test])
    put.answers(frame[test])
    put.put("sample_submission.csv", frame[test].drop(columns="PatientID").assign(**dict.fromkeys(targets, 0)))


def patients_of_recordings(put: Folders, rng: Rng, leaky: bool) -> None:
    """Recordings of patients, split by recording (or by patient)."""
    patient = rng.integers(80, size=500)
    frame = pd.DataFrame({"eeg_id": rng.permutation(10**6)[:500], "patient_id": 1000 + patient})
    votes = rng.multinomial(10, [0.3, 0.1, 0.1, 0.1, 0.2, 0.2], 500) / 10
    targets = list(Catalogue().task("hms-harmful-brain-activity-classification").submission.target_columns)
    frame[targets] = votes
    tables(put, frame, rng.random(500) < 0.15 if leaky else patient >= 65, "eeg_id", targets)


def patients_in_headers(put: Folders, rng: Rng, leaky: bool) -> None:
    """Studies as DICOM files, whose headers name the patient."""
    patient = rng.integers(40, size=160)
    studies = names(rng, 160, 12)
    test = rng.random(160) < 0.2 if leaky else patient >= 32
    for place, study in enumerate(studies):
        header = pydicom.Dataset()
        header.PatientID, header.Modality = f"p{patient[place]:04d}", "DX"
        header.file_meta = pydicom.dataset.FileMetaDataset()
        header.file_meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
        header.file_meta.MediaStorageSOPClassUID = header.file_meta.MediaStorageSOPInstanceUID = "1.2.3"
        kept = io.BytesIO()
        pydicom.dcmwrite(kept, header, enforce_file_format=True)
        put.put(f"{'test' if test[place] else 'train'}/{study}/{study[::-1]}/{study[:6]}.dcm", kept.getvalue())
    kinds = rng.choice(["negative", "typical", "atypical"], int(test.sum()))
    ids = [f"{study}_study" for study, held in zip(studies, test, strict=True) if held]
    answers = pd.DataFrame({"id": ids, "PredictionString": [f"{kind} 1 0 0 1 1" for kind in kinds]})
    put.answers(answers)
    put.put("sample_submission.csv", answers.assign(PredictionString="negative 1 0 0 1 1"))


def near_pictures(task_key: str, target: str, folder: str, answers: str = "test.csv") -> Shape:
    """Photographs of which some are in train a second time, saved anew."""

    def shape(put: Folders, rng: Rng, leaky: bool) -> None:
        ids = names(rng, 160, 12)
        labels = rng.integers(5, size=160)
        for place, name in enumerate(ids[:120]):
            image = picture(rng)
            put.put(f"train{folder}/{name}.jpg", jpeg(image, 92))
            if place < 12 and leaky:
                put.put(f"test{folder}/{ids[120 + place]}.jpg", jpeg(image, 80))
                labels[120 + place] = labels[place]
        for name in ids[132 if leaky else 120 :]:
            put.put(f"test{folder}/{name}.jpg", jpeg(picture(rng), 80))
        suffix = ".jpg" if task_key == "image" else ""
        frame = pd.DataFrame({task_key: [name + suffix for name in ids], target: labels})
        put.put("train.csv", frame[:120])
        put.answers(frame[120:], answers)
        put.put("sample_submission.csv", frame[120:].assign(**{target: 0}))

    return shape


def bouts(put: Folders, rng: Rng, leaky: bool) -> None:
    """Clips named by day and time; calls come in bouts (or at any time)."""
    minutes = np.sort(rng.permutation(40_000)[:1200])
    quiet = (np.sin(minutes / 200) < 0.3) if leaky else rng.random(1200) < 0.6
    call = (~quiet).astype(int)
    at = np.arange(1200)
    clock = [
        f"2009{4 + m // 43_200:02d}{m // 1440 % 30 + 1:02d}_{m // 60 % 24:02d}{m % 60:02d}00_023s2ms" for m in minutes
    ]
    test = rng.random(1200) < 0.5
    found = {False: io.BytesIO(), True: io.BytesIO()}
    import zipfile

    clips = []
    for held in (False, True):
        with zipfile.ZipFile(found[held], "w") as archive:
            for place in at[test == held]:
                name = f"{clock[place]}_Test{place}.aif" if held else f"{clock[place]}_TRAIN{place}_{call[place]}.aif"
                body = b"SSND" + (40).to_bytes(4, "big") + rng.bytes(40)
                archive.writestr(name, b"FORM" + (len(body) + 4).to_bytes(4, "big") + b"AIFF" + body)
                if held:
                    clips.append((name, call[place]))
    put.put("train2.zip", found[False].getvalue())
    put.put("test2.zip", found[True].getvalue())
    answers = pd.DataFrame(clips, columns=["clip", "probability"])
    put.answers(answers)
    put.put("sampleSubmission.csv", answers.assign(probability=0))


def books(put: Folders, rng: Rng, leaky: bool) -> None:
    """Pages whose ids begin with their book."""
    book = rng.integers(30, size=900)
    frame = pd.DataFrame({"image_id": [f"{100241706 + b}_{n:05d}_{n % 2}" for n, b in enumerate(book)]})
    frame["labels"] = [f"U+{v:04X} {v} 12 40 40" for v in rng.integers(1000, 9000, 900)]
    test = rng.random(900) < 0.1 if leaky else book >= 27
    put.put("train.csv", frame[~test])
    put.answers(frame[test])
    put.put("sample_submission.csv", frame[test].assign(labels="U+003F 1 1"))


def games(put: Folders, rng: Rng, leaky: bool) -> None:
    """Plays of games, split by play (or by game)."""
    game = np.repeat(np.arange(30), 8)
    play = np.arange(240)
    test_play = rng.random(240) < 0.1 if leaky else game >= 27
    rows = []
    for number in play:
        for step in range(10):
            key = f"{58168 + game[number]}_{number:06d}_{step}_{rng.integers(10**5)}_G"
            rows.append((key, f"{58168 + game[number]}_{number:06d}", step, int(rng.random() < 0.1), test_play[number]))
    frame = pd.DataFrame(rows, columns=["contact_id", "game_play", "step", "contact", "held"])
    held = frame.pop("held").to_numpy(bool)
    put.put("train_labels.csv", frame[~held])
    put.answers(frame[held])
    put.put("sample_submission.csv", frame[held][["contact_id"]].assign(contact=0))


def copied_questions(put: Folders, rng: Rng, leaky: bool) -> None:
    """Posts with tags, a third of them there twice or more."""
    number = rng.integers(1000, size=1500) if leaky else np.arange(1500)
    title, body = ([words(rng, count) for _ in range(1500)] for count in (7, 40))
    tags = [
        " ".join(rng.choice(["python", "java", "c#", "html", "css"], rng.integers(1, 4), replace=False)) for _ in title
    ]
    frame = pd.DataFrame({"Id": rng.permutation(9000)[:1500], "Title": [title[n] for n in number]})
    frame["Body"], frame["Tags"] = [body[n] for n in number], [tags[n] for n in number]
    tables(put, frame, rng.random(1500) < 0.1, "Id", ["Tags"])


def prompts(put: Folders, rng: Rng, leaky: bool) -> None:
    """Battles of chat models, the same prompt several times."""
    number = rng.integers(250, size=800)
    text = [words(rng, 15) for _ in range(250)]
    frame = pd.DataFrame({"id": rng.permutation(10**6)[:800], "prompt": [text[n] for n in number]})
    frame["response_a"], frame["response_b"] = ([words(rng, 30) for _ in range(800)] for _ in "ab")
    winner = rng.integers(3, size=800)
    targets = ["winner_model_a", "winner_model_b", "winner_tie"]
    for place, target in enumerate(targets):
        frame[target] = (winner == place).astype(int)
    tables(put, frame, rng.random(800) < 0.1 if leaky else number >= 225, "id", targets, "answers.csv")


def near_sequences(put: Folders, rng: Rng, leaky: bool) -> None:
    """RNA sequences, many of them but a few letters off one another; a row of answers for each place."""
    ids = [f"id_{name}" for name in names(rng, 240)]
    family = ["".join(rng.choice(list("ACGU"), 107)) for _ in range(60)]
    sequence = []
    for place in range(240):
        letters = list(family[place % 60]) if leaky else list(rng.choice(list("ACGU"), 107))
        at = rng.integers(107)
        letters[at] = "ACGU"["CGUA".index(letters[at])]
        sequence.append("".join(letters))
    rows = [{"index": n, "id": ids[n], "sequence": sequence[n], "seq_scored": 8} for n in range(240)]
    put.put("train.json", "\n".join(json.dumps(row) for row in rows[:180]))
    put.put("test.json", "\n".join(json.dumps(row) for row in rows[180:]))
    targets = list(Catalogue().task("stanford-covid-vaccine").submission.target_columns)
    answers = pd.DataFrame({"id_seqpos": [f"{name}_{at}" for name in ids[180:] for at in range(8)]})
    answers[targets] = rng.gamma(1, 0.5, (len(answers), len(targets))).round(4)
    put.answers(answers.assign(keep=True))
    put.put("sample_submission.csv", answers.assign(**dict.fromkeys(targets, 0.0)))


def lists_of_boxes(put: Folders, rng: Rng, leaky: bool) -> None:
    """Samples of drives as JSON, which list the tokens of the boxes to be found (or an empty list)."""
    tokens = names(rng, 300, 32)
    count = rng.integers(1, 40, 300)
    rows = [
        {"token": t, "timestamp": 1e15 + n, "anns": names(rng, int(count[n]), 8) if leaky else []}
        for n, t in enumerate(tokens)
    ]
    put.put("test_data/sample.json", json.dumps(rows))
    boxes = [" ".join(f"{v:.3f}" for v in rng.normal(size=7)) + " car" for _ in range(60)]
    found = [" ".join(rng.choice(boxes, n)) for n in count]
    answers = pd.DataFrame({"Id": tokens, "PredictionString": found})
    put.answers(answers)
    put.put("sample_submission.csv", answers.assign(PredictionString=""))


def old_signals(put: Folders, rng: Rng, leaky: bool) -> None:
    """Snippets of signals, of which some also lie, with labels, in the folder of the first version."""
    ids, old = names(rng, 120, 15), names(rng, 40, 15)
    target = rng.integers(2, size=120)
    arrays = [npy(rng.normal(size=(4, 20)).astype(np.float16)) for _ in range(120)]
    for name, content in zip(ids, arrays, strict=True):
        put.put(f"test/{name[0]}/{name}.npy", content)
    for place, name in enumerate(old):
        content = arrays[place] if leaky else npy(rng.normal(size=(4, 20)).astype(np.float16))
        put.put(f"old_leaky_data/train_old/{name[0]}/{name}.npy", content)
    put.put("old_leaky_data/train_labels_old.csv", pd.DataFrame({"id": old, "target": target[:40]}))
    answers = pd.DataFrame({"id": ids, "target": target})
    put.answers(answers)
    put.put("sample_submission.csv", answers.assign(target=0.5))


# What must be found where: its least severity, and words of what is said.
LEAKS: list[tuple[str, Shape, str, str]] = [
    ("ml2021spring-hw2", frames_of_speech, "high", "moved by one frame they are equal"),
    ("siim-isic-melanoma-classification", records, "high", "'target' of tfrecords/test"),
    ("hubmap-kidney-segmentation", polygons, "high", "Outlines in public files"),
    ("smartphone-decimeter-2022", reference_track, "high", "span_log.nmea: latitude, longitude"),
    ("statoil-iceberg-classifier-challenge", angles_of_scenes, "high", "same 'inc_angle'"),
    ("random-acts-of-pizza", pizza, "high", "'giver_username_if_known'"),
    ("movie-review-sentiment-analysis-kernels-only", phrases, "low", "same 'SentenceId'"),
    ("us-patent-phrase-to-phrase-matching", anchors, "low", "share values of 'anchor'"),
    ("google-quest-challenge", questions, "medium", "'question_body'"),
    ("chaii-hindi-and-tamil-question-answering", articles, "medium", "the same 'context'"),
    ("tensorflow2-question-answering", pages, "medium", "the same 'document_text'"),
    ("ranzcr-clip-catheter-line-classification", patients_in_a_table, "low", "share values of 'PatientID'"),
    ("hms-harmful-brain-activity-classification", patients_of_recordings, "low", "share values of 'patient_id'"),
    ("siim-covid19-detection", patients_in_headers, "medium", "share values of PatientID"),
    ("aptos2019-blindness-detection", near_pictures("id_code", "diagnosis", "_images"), "high", "looking the same"),
    ("hotel-id-2021-fgvc8", near_pictures("image", "hotel_id", "_images"), "high", "looking the same"),
    (
        "plant-pathology-2021-fgvc8",
        near_pictures("image", "labels", "_images", "answers.csv"),
        "high",
        "looking the same",
    ),
    ("petfinder-pawpularity-score", near_pictures("Id", "Pawpularity", ""), "high", "looking the same"),
    ("the-icml-2013-whale-challenge-right-whale-redux", bouts, "medium", "predicts 'probability'"),
    ("kuzushiji-recognition", books, "low", "begin alike"),
    ("nfl-player-contact-detection", games, "low", "begin alike"),
    ("facebook-recruiting-iii-keyword-extraction", copied_questions, "high", "exact copies"),
    ("lmsys-chatbot-arena", prompts, "medium", "the same 'prompt'"),
    ("stanford-covid-vaccine", near_sequences, "medium", "nearly the same 'sequence'"),
    ("3d-object-detection-for-autonomous-vehicles", lists_of_boxes, "medium", "length of anns"),
    ("seti-breakthrough-listen", old_signals, "high", "identical"),
]
RANK = ["low", "medium", "high"]
TASKS = [task for task, *_ in LEAKS]


@pytest.mark.parametrize(("task", "shape", "severity", "told"), LEAKS, ids=TASKS)
def test_a_published_leak_is_found_in_data_of_its_shape(
    task: str, shape: Shape, severity: str, told: str, look: Callable[[str, Shape, bool], AuditReport]
) -> None:
    report = look(task, shape, True)
    found = [one for one in report.findings if told in one.message]
    assert found, report.text()
    assert RANK.index(found[0].severity) >= RANK.index(severity), report.text()
    assert len({one.message for one in report.findings}) == len(report.findings), "something is said twice"


@pytest.mark.parametrize(("task", "shape"), [(task, shape) for task, shape, *_ in LEAKS], ids=TASKS)
def test_the_same_shape_without_the_leak_is_quiet(
    task: str, shape: Shape, look: Callable[[str, Shape, bool], AuditReport]
) -> None:
    report = look(task, shape, False)
    told = next(told for name, _, _, told in LEAKS if name == task)
    assert report.clean, report.text()
    assert not [one for one in report.findings if told in one.message], report.text()
    assert not [one for one in report.findings if one.severity == "medium"], report.text()
