"""Failure analysis on the labelled set: real runs of scripted agents, each with labels by who wrote the scenario."""

from __future__ import annotations

import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from mleredux._core.store import Run
from mleredux_experiments.failures import CATEGORIES, Finding, counts_by_arm, find

sys.path.insert(0, str(Path(__file__).parent / "failures"))
from scenarios import PACKED, labels


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[Finding]]]:
    folder = tmp_path_factory.mktemp("runs")
    with tarfile.open(PACKED) as archive:
        archive.extractall(folder, filter="data")
    yield {path.name: find(Run(path)) for path in sorted(folder.iterdir())}


def test_the_set_has_sixty_runs_of_three_kinds_of_agents(found: dict[str, list[Finding]]) -> None:
    assert set(found) == set(labels())
    assert len(found) >= 60
    assert {label for each in labels().values() for label in each} >= set(CATEGORIES) - {
        "environment",
        "api",
        "leak-used",
    }


def test_precision_and_recall(found: dict[str, list[Finding]]) -> None:
    """At least 0.95 and 0.9, over all pairs of a run and a category."""
    said = {(run, finding.category) for run, each in found.items() for finding in each}
    true = {(run, label) for run, each in labels().items() for label in each}
    wrong, missed = sorted(said - true), sorted(true - said)
    assert len(said & true) >= 0.95 * len(said), wrong
    assert len(said & true) >= 0.9 * len(true), missed


def test_the_primary_one_is_right(found: dict[str, list[Finding]]) -> None:
    wrong = {
        run: (each[0].category if each else None, labels()[run])
        for run, each in found.items()
        if (each[0].category if each else None) != next(iter(labels()[run]), None)
    }
    assert len(wrong) <= 0.05 * len(found), wrong


def test_each_finding_shows_its_line(found: dict[str, list[Finding]]) -> None:
    for run, each in found.items():
        for finding in each:
            assert finding.line.strip(), (run, finding)
            assert finding.where, (run, finding)


def test_counts_compare_arms(found: dict[str, list[Finding]]) -> None:
    counts = counts_by_arm((run.rpartition("-")[2], each) for run, each in found.items())
    assert set(counts) == {"search", "shell", "script"}
    assert counts["search"]["debug-loop"] == 1
    assert counts["script"]["debug-loop"] == 0
    assert sum(sum(each.values()) for each in counts.values()) == len(found)
