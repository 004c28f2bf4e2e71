"""The published leaks of MLE-bench's competitions, in synthetic data of their shape at a detectable size.

Each shape is the layout that the preparation leaves, under the competition's own declaration. It is audited twice:
as published, where the leak must be found, and with the leak taken out, where nothing severe may be said.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from mleredux._core.plugins import Catalogue
from mleredux_audit_leaks.audit import audit
from mleredux_audit_leaks.report import AuditReport

sys.path.insert(0, str(Path(__file__).parent / "published"))
from leak_files import (
    angles_of_scenes,
    bouts,
    frames_of_speech,
    near_pictures,
    old_signals,
    patients_in_headers,
    polygons,
    records,
    reference_track,
)
from leak_making import Folders, Shape
from leak_tables import (
    anchors,
    articles,
    books,
    copied_questions,
    games,
    lists_of_boxes,
    near_sequences,
    pages,
    patients_in_a_table,
    patients_of_recordings,
    phrases,
    pizza,
    prompts,
    questions,
)


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


# What must be found where: its least severity, and words of what is said.
LEAKS: list[tuple[str, Shape, str, str]] = [
    ("ml2021spring-hw2", frames_of_speech, "high", "they are equal if shifted"),
    ("siim-isic-melanoma-classification", records, "high", "'target' of tfrecords/test"),
    ("hubmap-kidney-segmentation", polygons, "high", "Outlines in public files"),
    ("smartphone-decimeter-2022", reference_track, "high", "span_log.nmea: latitude, longitude"),
    ("statoil-iceberg-classifier-challenge", angles_of_scenes, "high", "test row's 'inc_angle'"),
    ("random-acts-of-pizza", pizza, "high", "'giver_username_if_known'"),
    ("movie-review-sentiment-analysis-kernels-only", phrases, "low", "test row's 'SentenceId'"),
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
    ("kuzushiji-recognition", books, "low", "share the first"),
    ("nfl-player-contact-detection", games, "low", "share the first"),
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
