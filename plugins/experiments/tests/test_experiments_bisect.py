"""Bisection finds the commit that changed a score, with errors at most as often as it says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mleredux.errors import MlereduxError
from mleredux.plugin.command import current
from mleredux_experiments.execution.bisection import Bisection, commit_of, side


class Simulated(Bisection):
    """Scores drawn instead of run: 1 before the first bad commit, less from it on, with noise."""

    first_bad: int
    noise: float
    generator: np.random.Generator
    drawn: dict[int, list[float]]

    def _values(self, number: int, seeds: int) -> Any:
        drawn = self.drawn.setdefault(number, [])
        while len(drawn) < seeds:
            drawn.append(float(number < self.first_bad) + self.noise * self.generator.normal())
        return dict.fromkeys(self.tasks, drawn[:seeds])


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


@pytest.mark.parametrize("most", [2, 3, 4])
@pytest.mark.parametrize("tasks", [1, 2, 4])
def test_so_few_seeds_that_nothing_can_be_decided_are_refused_with_a_number_that_can(tasks: int, most: int) -> None:
    def search(most: int) -> str:
        """Return the first bad commit, or why it is unknown."""
        bisection = Simulated(
            ["repo:x@0", "repo:x@1"], [f"t{number}" for number in range(tasks)], {}, current(), least=2, most=most
        )
        bisection.first_bad, bisection.noise, bisection.generator = 1, 0.0, np.random.default_rng(0)
        bisection.drawn = {}
        try:
            return bisection.find()[1]
        except MlereduxError as error:
            return str(error)

    if refused := re.search(rf"{most} seeds on {tasks} tasks? can't .* Use --seeds (\d+) or more", search(most)):
        enough = int(refused[1])
        assert "can't" in search(enough - 1) and search(enough) == "repo:x@1"
    else:
        assert tasks > 1 and search(most) == "repo:x@1"


class Crashing(Simulated):
    """Submits nothing from the first bad commit on."""

    def _values(self, number: int, seeds: int) -> Any:
        return super()._values(number, seeds) if number < self.first_bad else None


def test_a_commit_that_submits_nothing_is_bad() -> None:
    found = Crashing([f"repo:x@{number}" for number in range(9)], ["task"], {}, current())
    found.first_bad, found.noise, found.generator, found.drawn = 6, 0.3, np.random.default_rng(0), {}
    assert found.find() == ("repo:x@5", "repo:x@6")
    found.first_bad = 0
    with pytest.raises(MlereduxError, match="GOOD produces no valid submission"):
        found.find()


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

    def history(good: str, bad: str, reference: str = f"repo:{tmp_path}") -> Any:
        return current().call_scheme("list_history", reference, good, bad)

    found = history(good="v1", bad="main")
    assert [commit_of(reference) for reference in found] == commits[1:]
    with pytest.raises(MlereduxError, match="is not an ancestor"):
        history(good="main", bad=commits[0])
    with pytest.raises(MlereduxError, match=r"no commit nowhere|nowhere"):
        history(good="nowhere", bad="main")
    assert history(reference="dummy", good="a", bad="b") is None


SOLVE = """
import csv, json, os, pathlib, random
data, out, task = (pathlib.Path(os.environ[f"MLEREDUX_{name}_DIR"]) for name in ("DATA", "OUTPUT", "TASK"))
facts = json.loads((task / "task.json").read_text())
ids, target = facts["id_columns"], facts["target_columns"][0]
train, test = (list(csv.DictReader((data / name).open())) for name in ("train.csv", "test.csv"))
features = [name for name in test[0] if name not in ids]
known = random.Random(os.environ["MLEREDUX_SEED"]).sample(train, len(train) - 3)
rows = []
for row in test:
    best = min(known, key=lambda other: sum((float(row[n]) - float(other[n])) ** 2 for n in features))
    rows.append([*(row[n] for n in ids), best[target]])
with (out / "submission.csv").open("w", newline="") as file:
    csv.writer(file).writerows([[*ids, target], *rows])
"""


def test_a_commit_of_a_repository_is_found_by_running_it(tmp_path: Path) -> None:
    """Of eight commits, the sixth gives the same answer for all rows."""
    folder, best = tmp_path / "agent", SOLVE.splitlines()[10].strip()
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    manifest = '[agent]\nid = "nearest"\ncommand = ["python3", "/opt/agent/solve.py"]\n[smoke]\ntask = "toy"\n'
    (folder / "mleredux-agent.toml").write_text(manifest)
    for number in range(8):
        (folder / "solve.py").write_text(
            SOLVE.replace(best, "best = known[0]" if number >= 5 else best) + f"# {number}\n"
        )
        git(folder, "add", "-A")
        git(folder, "commit", "-qm", str(number))
    commits = git(folder, "rev-list", "--reverse", "HEAD").split()
    command = [sys.executable, "-m", "mleredux", "-p", "mleredux_testing.toys", "bisect", f"repo:file://{folder}"]
    command += [commits[0], "main", "--task", "toy", "--sandbox", "process", "--json"]
    command += ["--alpha", "0.2", "--seeds", "4"]
    command += ["--runs-dir", str(tmp_path / "runs"), "--data-dir", str(tmp_path / "data")]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["last_good"], told["first_bad"], told["undecided"]) == (commits[4], commits[5], 0)
    assert sum(step["runs"] for step in told["steps"]) <= 12
    assert {step["decided"] for step in told["steps"][2:]} == {"good", "bad"}
