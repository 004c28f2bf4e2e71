"""Bisection finds the commit that changed a score, with errors at most as often as it says."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mleredux.errors import MlereduxError
from mleredux.plugin.command import current
from mleredux_experiments.bisection import Bisection, commit_of, side


class Simulated(Bisection):
    """Scores drawn instead of run: 1 before the first bad commit, less from it on, with noise."""

    first_bad: int
    noise: float
    generator: np.random.Generator

    def _values(self, number: int, seeds: int) -> Any:
        drawn = self.drawn.setdefault(number, [])
        while len(drawn) < seeds:
            drawn.append(float(number < self.first_bad) + self.noise * self.generator.normal())
        return {"task": drawn[:seeds]}


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_the_first_bad_commit_is_found_with_few_runs(noise: float) -> None:
    right, runs = 0, []
    for trial in range(60):
        generator = np.random.default_rng(trial)
        found = Simulated([f"repo:x@{number}" for number in range(33)], ["task"], {}, current(), most=20)
        found.first_bad, found.noise, found.generator = int(generator.integers(1, 33)), noise, generator
        found.drawn = {}
        right += found.find()[1] == f"repo:x@{found.first_bad}"
        runs.append(sum(len(drawn) for drawn in found.drawn.values()))
    assert right >= (60 if noise == 0 else 54)
    assert np.mean(runs) < 33  # fewer than one run of every commit


def test_a_sequential_decision_errs_at_most_as_often_as_it_says() -> None:
    generator, wrong = np.random.default_rng(0), 0
    good, bad = {"t": [1.0, 1.2, 0.8, 1.0, 1.1, 0.9]}, {"t": [0.5, 0.7, 0.3, 0.5, 0.6, 0.4]}
    for _ in range(400):
        values: list[float] = []
        while (found := side({"t": values}, good, bad, 0.05)) is None:
            values.append(1.0 + 0.15 * generator.normal())
        wrong += found == "bad"
    assert wrong <= 30


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    return subprocess.run(
        ["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def test_the_history_is_read_along_first_parents(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    commits = []
    for number in range(4):
        (tmp_path / "file").write_text(str(number))
        git(tmp_path, "add", "file")
        git(tmp_path, "commit", "-qm", str(number))
        commits.append(git(tmp_path, "rev-parse", "HEAD"))
    git(tmp_path, "tag", "-a", "v1", "-m", "v1", commits[1])
    (tmp_path / ".git" / "hooks" / "post-checkout").write_text("#!/bin/sh\ntouch hooked\n")
    history = current().hook("mleredux_list_history")
    found = history(reference=f"repo:{tmp_path}", good="v1", bad="main")
    assert [commit_of(reference) for reference in found] == commits[1:]
    with pytest.raises(MlereduxError, match="is not an ancestor"):
        history(reference=f"repo:{tmp_path}", good="main", bad=commits[0])
    with pytest.raises(MlereduxError, match=r"no commit nowhere|nowhere"):
        history(reference=f"repo:{tmp_path}", good="nowhere", bad="main")
    assert history(reference="dummy", good="a", bad="b") is None
