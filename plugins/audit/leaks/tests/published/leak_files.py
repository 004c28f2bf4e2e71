"""Published leaks that show in files: arrays, pictures, sound, records, their headers and sizes."""

from __future__ import annotations

import io
import json

import numpy as np
import pandas as pd
import py7zr
import pydicom
from leak_making import Folders, Rng, Shape, jpeg, names, npy, picture


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
    """Photographs of which some are in train a second time, saved again."""

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
