"""The reference agent: it answers all techniques from the public files, well but not perfectly."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import mleredux_testing as testing
import numpy as np
import pandas as pd
import pytest
from mleredux._core.data import Prepared
from mleredux._core.plugins.catalogue import set_current
from mleredux._core.stages.grade import grade
from mleredux_agent_analyst.answers import cv, encoding, leakage, missing, scaling
from mleredux_agent_analyst.relations import lost
from mleredux_agent_analyst.tables import Tables
from mleredux_agent_analyst.tables import read as tables_of
from mleredux_rollout import check_rollout
from mleredux_techniques.kit import TRUTH_FILE
from technique_documents import TECHNIQUES, read

Preparer = Callable[[str], Prepared]


def run_analyst(public: Path, output: Path, technique: str) -> subprocess.CompletedProcess[str]:
    """The agent as a sandbox starts it: with the public files alone."""
    output.mkdir(parents=True, exist_ok=True)
    env = {
        "PATH": os.environ["PATH"],
        "MLEREDUX_TASK_DIR": str(output),
        "MLEREDUX_DATA_DIR": str(public),
        "MLEREDUX_OUTPUT_DIR": str(output),
        "MLEREDUX_SUBMISSION": str(output / f"{technique}_analysis.json"),
    }
    command = [sys.executable, "-m", "mleredux_agent_analyst"]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("technique", TECHNIQUES)
def test_it_answers_each_question_in_a_document_that_is_read(
    technique: str, prepared: Preparer, tmp_path: Path
) -> None:
    task = prepared(f"{technique}+planted-public-1@wine" if technique == "debugging" else f"{technique}@shop")
    ended = run_analyst(task.public, tmp_path, technique)
    assert ended.returncode == 0, ended.stderr
    text = (tmp_path / f"{technique}_analysis.json").read_text(encoding="utf-8")
    document = read(technique, json.loads(text))
    truth = json.loads((task.private / TRUTH_FILE).read_bytes())
    reached = TECHNIQUES[technique].assess(document, truth).score
    least = 0.0 if technique == "debugging" else 0.4  # its lines are of no list that rules of thumb could know
    assert least <= reached <= 1.0, f"{technique}: {reached}"
    assert check_rollout(tmp_path / "rollout" / "trajectory.json") == []
    assert "Answer with table statistics" in (tmp_path / "logs" / "analyst.log").read_text(encoding="utf-8")


def test_the_same_data_gives_the_same_document(prepared: Preparer, tmp_path: Path) -> None:
    public = prepared("leakage+planted-public-1@wine").public
    texts = set()
    for number in range(2):
        run_analyst(public, tmp_path / str(number), "leakage")
        texts.add((tmp_path / str(number) / "leakage_analysis.json").read_bytes())
    assert len(texts) == 1


def test_a_competition_gets_its_sample_since_there_is_no_question(prepared: Preparer, tmp_path: Path) -> None:
    public = prepared("wine").public
    assert run_analyst(public, tmp_path, "wine").returncode == 1, "without task.json there is no sample either"
    (tmp_path / "task.json").write_text('{"sample": "sample_submission.csv"}', encoding="utf-8")
    ended = run_analyst(public, tmp_path, "wine")
    assert ended.returncode == 0 and "not a technique task" in ended.stdout
    assert (tmp_path / "wine_analysis.json").read_bytes() == (public / "sample_submission.csv").read_bytes()


def test_inside_the_sandbox_it_never_imports_mleredux() -> None:
    names = ", ".join(
        f"mleredux_agent_analyst.{name}" for name in ("__main__", "tables", *(f"answers.{name}" for name in TECHNIQUES))
    )
    code = f"import sys, {names}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert not [name for name in loaded if name.partition(".")[0] in ("mleredux", "mleredux_techniques")]


@pytest.mark.docker
@pytest.mark.slow
def test_it_runs_in_a_container(bench: Any, tmp_path: Path, docker_engine: Any) -> None:
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "mleredux", "run", "scaling+planted-public-1@wine", "--agent", "analyst"),
            *("--sandbox", "docker", "--data-dir", str(bench.data.path), "--runs-dir", str(tmp_path), "--json"),
        ],
        capture_output=True,
        text=True,
        timeout=900,
    )
    told = json.loads(ended.stdout)
    assert told["status"] == "done", ended.stderr
    assert told["report"]["score"] > 0.4
    assert told["report"]["details"]["efficacy"]["parts"]


@pytest.mark.parametrize("check", testing.checks("analyst"))
def test_conforms(check: Any, tmp_path: Path) -> None:
    check(tmp_path)


def test_a_thorough_answer_names_columns_that_lose_what_they_tell() -> None:
    rng, rows, train = np.random.default_rng(0), 900, 600
    y = rng.normal(size=rows)
    frame = pd.DataFrame({f"x{place}": y + rng.normal(0, 1.5, rows) for place in range(4)})
    frame["strong"] = y + rng.normal(0, 0.5, rows)  # honest: it holds on the test
    frame["copy"] = np.where(np.arange(rows) < train, y, rng.permutation(y)) + rng.normal(0, 0.7, rows)
    frame["word"] = pd.Series(np.where(np.arange(rows) < train, y, rng.permutation(y)) > 0).map({True: "a", False: "b"})
    frame["noise"], frame["step"] = rng.normal(size=rows), np.arange(rows, dtype=float)
    kinds = {name: "text" if name == "word" else "number" for name in frame}
    for target in (pd.Series(y), pd.Series(np.digitize(y, [-0.5, 0.5])).map({0: "low", 1: "middle", 2: "high"})):
        tables = Tables(
            "leakage", frame[:train].assign(y=target[:train]), frame[train:], "y", [], list(frame), kinds, thorough=True
        )
        assert set(lost(tables)) == {"copy", "word"}
        told = {name for risk in leakage.analyse(tables)["risks"] for name in risk["columns"]}
        assert told == {"copy", "word"}
        assert cv.analyse(tables)["method"]["name"] == "TimeSeriesSplit"
        rules = replace(tables, thorough=False)
        assert not leakage.analyse(rules)["risks"] and cv.analyse(rules)["time"] is None


@pytest.mark.parametrize("classes", [True, False])
@pytest.mark.parametrize("levels", [7, 12, 15])
def test_codes_are_told_from_ordered_values_by_the_target(classes: bool, levels: int) -> None:
    rng = np.random.default_rng(levels)
    level = rng.integers(0, levels, 1_500)
    target = level + 0.3 * levels * rng.standard_normal(len(level))
    shuffled = np.roll(np.arange(levels)[::-1], levels // 2)[level]
    texts = [np.array([f"C{100 + 7 * value}" for value in values], dtype=object) for values in (level, shuffled)]
    columns = {"steps": level * 3.0, "codes": shuffled * 3.0, "graded": texts[0], "named": texts[1]}
    columns |= {"unrelated": rng.integers(0, levels, len(level)) * 1.0, "target": target}
    frame = pd.DataFrame(columns).assign(target=(target > np.median(target)).astype(str) if classes else target)
    kinds = dict.fromkeys(columns, "number") | dict.fromkeys(("graded", "named"), "text")
    names = [name for name in columns if name != "target"]
    tables = Tables("encoding", frame, None, "target", [], names, kinds, thorough=True)
    thorough = {item["column"]: item["type"] for item in encoding.analyse(tables)["features"]}
    assert thorough == {"codes": "nominal", "graded": "ordinal", "named": "nominal"}
    quick = {item["column"]: item["type"] for item in encoding.analyse(replace(tables, thorough=False))["features"]}
    assert quick == {"graded": "nominal", "named": "nominal"}


@pytest.mark.parametrize("rows", [600, 2_000])
def test_a_skewed_column_does_not_explain_its_gaps(rows: int) -> None:
    """Only a bell curve that lacks one end does; random gaps in a long tail, or in a bell curve, are random."""
    rng = np.random.default_rng(rows)
    level = rng.standard_normal(rows)
    columns = {"incomes": np.exp(level), "times": rng.exponential(size=rows), "counts": rng.poisson(2.0, rows) * 1.0}
    columns |= {"losses": -rng.gamma(2, size=rows), "bell": rng.standard_normal(rows)}
    for values in columns.values():
        values[rng.permutation(rows)[:30]] = np.nan
    for name, side in (("low", 1), ("high", -1)):
        values = rng.standard_normal(rows)
        columns[name] = np.where(rng.random(rows) < 1 / (1 + np.exp(6 * (side * values + 0.5))), np.nan, values)
    frame = pd.DataFrame(columns).assign(target=rng.random(rows))
    names = list(columns)
    tables = Tables("missing", frame, None, "target", [], names, dict.fromkeys(frame, "number"), thorough=True)
    claims = {item["column"]: item["mechanism"] for item in missing.analyse(tables)["columns"]}
    assert claims == {**dict.fromkeys(names, "MCAR"), "low": "MNAR", "high": "MNAR"}


def test_long_tails_become_ranks() -> None:
    rng = np.random.default_rng(0)
    tails = {"right": np.exp(2 * rng.standard_normal(800)), "left": -np.exp(rng.standard_normal(800))}
    frame = pd.DataFrame({**tails, "even": rng.random(800), "target": rng.random(800)})
    kinds = dict.fromkeys(frame.columns, "number")
    tables = Tables("scaling", frame, None, "target", [], ["right", "left", "even"], kinds, thorough=True)
    chosen = {item["column"]: item["scaler"]["name"] for item in scaling.analyse(tables)["features"]}
    assert chosen == {"right": "QuantileTransformer", "left": "QuantileTransformer", "even": "StandardScaler"}


@pytest.mark.parametrize("technique", ["cv", "encoding", "scaling"])
def test_a_thorough_analysis_is_as_good_as_the_solution(
    technique: str, prepared: Preparer, bench: Any, tmp_path: Path
) -> None:
    """On data that distinguishes good from bad advice."""
    task, made = bench.task(f"{technique}@synthetic-public-21"), prepared(f"{technique}@synthetic-public-21")
    module = import_module(f"mleredux_agent_analyst.answers.{technique}")
    documents = {
        "solution": task.solution(task, made.private),
        "analysis": json.dumps(module.analyse(replace(tables_of(made.public), thorough=True))).encode(),
    }
    set_current(bench.catalogue)
    scores = {}
    for name, document in documents.items():
        path = tmp_path / name / task.submission.file
        path.parent.mkdir()
        path.write_bytes(document)
        scores[name] = grade(task, path, made.private, bench.catalogue).score
    assert scores["solution"] == 1.0 and scores["analysis"] >= 0.95, scores
