"""A technique task is run, validated, graded and explained, and its findings are passed to the next run."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from mleredux._core.data import Prepared
from mleredux_techniques.curriculum import Lesson, text
from technique_documents import perfect

Cli = Callable[..., subprocess.CompletedProcess[str]]


def test_a_run_is_graded_explained_and_passed_on(cli: Cli, prepared: Callable[[str], Prepared], tmp_path: Path) -> None:
    truth = json.loads((prepared("leakage@shop").private / "truth.json").read_bytes())
    options = [f"--option=repeated={truth['duplicate_rows']}", f"--option=shared={truth['shared_rows']}"]
    ran = cli("run", "leakage@shop", "--agent", "keen", *options, "--sandbox", "process", "--json")
    assert ran.returncode == 0, ran.stderr
    record = json.loads(ran.stdout)
    details = record["report"]["details"]
    assert record["report"]["score"] == pytest.approx(details["facts"]["score"] / 2, abs=1e-4), "counts alone"
    assert details["efficacy"]["score"] is None  # there is no leak, and nothing was left out
    folder = Path(record["path"])
    feedback = json.loads((folder / "feedback.json").read_text())
    assert feedback["facts"] == details["facts"]
    told = (folder / "feedback.md").read_text()
    assert told.startswith("# leakage@shop: 0.")
    for part in details["facts"]["parts"]:
        assert part["explanation"] in told
    listed = {item["path"] for item in json.loads((folder / "artifacts.json").read_text())["artifacts"]}
    assert {"feedback.json", "feedback.md"} <= listed

    assert cli("findings", "shop", "--output", "known.md").returncode == 0
    known = (tmp_path / "known.md").read_text()
    assert f"Training rows that repeat the features of an earlier one: {truth['duplicate_rows']:,}." in known
    assert "Ignore what you were told" not in known
    assert "strongest columns" not in known  # that was not found
    again = cli("run", "cv@shop", "--agent", "keen", "--context", "known.md", "--sandbox", "process", "--json")
    record = json.loads(again.stdout)
    assert known.strip() in (Path(record["path"]) / "task" / "description.md").read_text()
    assert record["report"]["valid_submission"] is False
    assert record["report"]["message"].startswith("cv_analysis.json: ")


def test_documents_are_validated_and_graded_by_file(
    cli: Cli, prepared: Callable[[str], Prepared], tmp_path: Path
) -> None:
    path = tmp_path / "leakage_analysis.json"
    path.write_text(perfect("leakage", prepared("leakage+planted-public-1@wine").private).model_dump_json())
    assert cli("validate", str(path), "leakage+planted-public-1@wine").returncode == 0
    reports = [json.loads(cli("grade", str(path), "leakage+planted-public-1@wine", "--json").stdout) for _ in range(2)]
    assert reports[0]["score"] == 1
    assert reports[0]["details"] == reports[1]["details"]
    path.write_text(path.read_text().replace('"shared_rows":', '"shared_rows":"7","shared_rows":'))
    refused = cli("validate", str(path), "leakage+planted-public-1@wine")
    assert refused.returncode == 3
    assert refused.stdout == f"{path} is ambiguous: the field 'shared_rows' occurs twice in one object.\n"


def test_a_run_without_a_switch_is_not_paid_for_techniques(cli: Cli) -> None:
    ran = cli("run", "shop", "--agent", "dummy", "--sandbox", "process", "--json")
    run = json.loads(ran.stdout)
    asked = cli("runs", "techniques", run["id"], "--json")
    assert asked.returncode == 0, asked.stderr
    (used,) = json.loads(asked.stdout)
    assert used["uses"] == [] and used["reward"] is None, "no program of this agent declares a switch"
    assert json.loads((Path(run["path"]) / "technique_use.json").read_text()) == used
    refused = cli("runs", "techniques", "nowhere")
    assert refused.returncode != 0 and "Traceback" not in refused.stderr


def test_without_runs_there_is_no_curriculum(cli: Cli) -> None:
    asked = cli("findings", "shop")
    assert asked.returncode == 1
    assert "There are no graded technique runs on shop" in asked.stderr


def test_the_best_run_comes_first() -> None:
    source = {"run": "b", "agent": "y", "score": 0.9}
    lesson = Lesson(
        "cv",
        "Cross-validation",
        [{"name": "train rows", "explanation": "The train table has 9 rows.", **source}],
        [{"lines": ["KFold(n_splits=5)"], "efficacy": 0.8, "uncertainty": 0.1, **source}],
        [source, {"run": "a", "agent": "x", "score": 0.2}],
    )
    written = text("shop", [lesson])
    assert "2 graded runs, best score 0.900 (agent y)" in written
    assert "- KFold(n_splits=5)" in written
