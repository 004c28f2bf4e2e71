"""`mleredux audit TASK` on prepared tasks: the shipped ones, a third party's, golden cases of MLE-bench."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner
from mleredux._core.cli.root import root
from mleredux._core.data import DataStore
from mleredux._core.plugins import Catalogue
from mleredux._core.stages.prepare import prepare
from mleredux.errors import DataError
from mleredux_audit_leaks.audit import audit
from mleredux_audit_leaks.report import AuditReport

TOYS = "mleredux_testing.toys"
STARTERS = ("breast-cancer", "cell-nuclei", "diabetes", "digits", "wine")


def test_a_third_party_task_is_clean_until_answers_are_made_public(mleredux_home: Path) -> None:
    catalogue = Catalogue(load=[TOYS])
    prepared = prepare(catalogue.task("toy"), catalogue, DataStore(None))
    clean = CliRunner().invoke(root, ["-p", TOYS, "audit", "toy", "--json"])
    assert clean.exit_code == 0, clean.output
    assert json.loads(clean.output)["findings"] == []

    (prepared.public / "old.csv").write_text((prepared.private / "answers.csv").read_text() + "\n")
    found = CliRunner().invoke(root, ["-p", TOYS, "audit", "toy"])
    assert found.exit_code == 3
    assert "HIGH    answers: Column 'large' of old.csv is 'large' of the test rows." in found.output


def test_a_task_that_is_not_prepared_is_one_sentence(mleredux_home: Path) -> None:
    outcome = CliRunner().invoke(root, ["-p", TOYS, "audit", "toy"])
    assert isinstance(outcome.exception, DataError)
    assert str(outcome.exception) == "Task toy is not prepared. Prepare it first: `mleredux prepare toy`."


@pytest.mark.parametrize("name", STARTERS)
def test_the_starter_competitions_have_no_severe_leak(name: str, mleredux_home: Path) -> None:
    catalogue = Catalogue()
    task = catalogue.task(name)
    prepared = prepare(task, catalogue, DataStore(None))
    report = audit(task, prepared.public, prepared.private)
    assert report.clean, report.text()


def golden(name: str, shared: Path, folder: Path) -> AuditReport:
    """The audit of a golden case, prepared as published."""
    task = Catalogue().task(name)
    expected = json.loads((shared / "golden" / name / "expected.json").read_text())
    with zipfile.ZipFile(shared / "golden" / name / "raw.zip") as packed:
        packed.extractall(folder / "raw")
    preparation = task.prepare
    size = (expected.get("overrides") or {}).get("test_size")
    if size is not None:
        preparation = preparation.with_settings(test_size=size)  # type: ignore[union-attr]
    assert preparation is not None
    preparation(folder / "raw", folder / "public", folder / "private")
    return audit(task, folder / "public", folder / "private")


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "severity", "words"),
    [
        ("cassava-leaf-disease-classification", "high", "Column 'target' of test_tfrecords"),
        (
            "random-acts-of-pizza",
            "high",
            "'giver_username_if_known' of test.json identifies, by values other than the most frequent one",
        ),
        ("text-normalization-challenge-russian-language", "medium", "nearly determines 'after'"),
        ("movie-review-sentiment-analysis-kernels-only", "low", "share values of 'SentenceId'"),
    ],
)
def test_published_leaks_are_found(name: str, severity: str, words: str, shared: Path, tmp_path: Path) -> None:
    report = golden(name, shared, tmp_path)
    assert [one for one in report.findings if words in one.message and one.severity == severity], report.text()


@pytest.mark.shared
@pytest.mark.parametrize("name", ["spaceship-titanic", "spooky-author-identification", "petfinder-pawpularity-score"])
def test_cases_without_leaks_are_not_called_severe(name: str, shared: Path, tmp_path: Path) -> None:
    report = golden(name, shared, tmp_path)
    assert report.clean, report.text()
