"""Diffs, notebooks and reproductions of real runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mleredux_testing as testing
import pytest
from mleredux._core.plugins import current
from mleredux.errors import MlereduxError
from mleredux.models import State
from mleredux_artifact_notes.reproduce import compare, reproduce
from mleredux_artifact_notes.rerun import RUNNER, copy_programs
from mleredux_artifact_notes.solutions import diff_of, entry_of, solutions_of
from mleredux_grading import verify_run
from mleredux_rollout import AgentInfo, Step, StepExtra, ToolCall, Trajectory, dump_rollout

SOLUTION = """\
import csv, sys
rows = list(csv.reader(open(sys.argv[1] + "/sample_submission.csv")))
csv.writer(open(sys.argv[2], "w")).writerows(rows)
"""
BETTER = SOLUTION.replace("rows = ", "# better\nrows = ")


def noisy(value: str) -> str:
    return SOLUTION.replace("csv.writer", f"import random\nrows[1][1] = str({value})\ncsv.writer", 1)


def step(number: int, code: str, **facts: Any) -> Step:
    call = ToolCall(tool_call_id=f"c{number}", function_name="python", arguments={"code": code})
    return Step(step_id=number, source="agent", message="", tool_calls=[call], extra=StepExtra(**facts).as_extra())


@pytest.mark.slow
def test_code_is_stored_with_each_version_and_its_changes_are_a_diff(run_agent: Any, tmp_path: Path) -> None:
    run = run_agent(SOLUTION, BETTER)
    assert run.state is State.DONE, run.message
    assert [solution.name for solution in solutions_of(run)] == ["version 1", "version 2"]
    text = (run.path / "solutions.diff").read_text()
    assert "+# better\n" in text and "# version 2, from version 1\n" in text
    assert {"solutions.diff", "submissions/0001-code/solution.py"} <= {a.path for a in run.manifest.artifacts}
    (tmp_path / "solution.py").write_text(SOLUTION)
    change = text.partition("# version 2")[2]
    subprocess.run(["git", "apply", "-"], input=f"#{change}", cwd=tmp_path, text=True, check=True)
    assert (tmp_path / "solution.py").read_text() == BETTER


def test_solutions_of_a_search_are_compared_with_their_parents(run_agent: Any) -> None:
    run = run_agent(SOLUTION)
    steps = [
        step(1, "a = 1\n", node_id="n1", stage="draft", is_buggy=True),
        step(2, "b = 1\n", node_id="n2", stage="draft", validation_metric=0.5),
        step(3, "a = 2\n", node_id="n3", parent_id="n1", stage="debug"),
    ]
    rollout = Trajectory(agent=AgentInfo(name="x", version="1"), steps=steps)
    (run.path / "rollout.json").write_bytes(dump_rollout(rollout))
    found = solutions_of(run)
    assert [(solution.about, solution.parent) for solution in found] == [
        ("draft, buggy", None),
        ("draft, validation 0.5", None),
        ("debug", 0),
    ]
    assert "# step 3 (debug), from step 1\n" in diff_of(found) and "-a = 1\n+a = 2\n" in diff_of(found)


def test_the_notebook_runs_and_gets_the_score_of_the_run(run_agent: Any, tmp_path: Path) -> None:
    import nbformat
    from nbclient import NotebookClient

    run = run_agent(SOLUTION)
    book = nbformat.read(run.path / "notebook.ipynb", as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(book)
    NotebookClient(book, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    printed = book.cells[-1].outputs[0]["text"]
    assert printed.startswith(f"log-loss {run.report.score} medal:")


@pytest.mark.parametrize(
    ("solution", "verdict"),
    [
        (SOLUTION, "identical"),
        (noisy("150 + 1e-6 * random.random()"), "equal"),
        (noisy("150 + 1e9 * random.random()"), "different"),
        (SOLUTION + "import os\nif 'reproduce' in os.getcwd(): raise SystemExit(3)\n", "failed"),
    ],
)
def test_the_final_code_is_rerun_and_its_submission_compared(
    run_agent: Any, store: Any, solution: str, verdict: str
) -> None:
    run = run_agent(solution, task="diabetes")
    result = reproduce(run, store, current())
    assert result["verdict"] == verdict, result
    assert json.loads((run.path / "reproduction.json").read_text()) == result
    assert "reproduction.json" in {artifact.path for artifact in run.manifest.artifacts}
    again = store.get(result["repetition"])
    assert again.spec.agent == f"reproduce:{run.path}#solution.py" and again.spec.network == "none"


@pytest.mark.parametrize("name", ["solve.py", "a#b.py", "solve.ipynb"])
def test_a_script_is_reproduced_with_its_modules_in_any_folder(name: str, tmp_path: Path, mleredux_home: Path) -> None:
    folder = tmp_path / "work @1#2 %23"
    folder.mkdir()
    (folder / "helper.py").write_text("from os import environ\nfrom shutil import copy\n")
    solve = "from helper import *\ncopy(environ['MLEREDUX_DATA_DIR'] + '/sample_submission.csv', 'submission.csv')\n"
    cells = [{"cell_type": "code", "source": solve, "metadata": {}, "outputs": [], "execution_count": None}]
    (folder / name).write_text(json.dumps({"cells": cells}) if name.endswith(".ipynb") else solve)
    program = [sys.executable, "-m", "mleredux"]
    run = [*program, "run", "wine", "--agent", f"./{name}", "--sandbox", "process", "--runs-dir", "runs #3"]
    subprocess.run(run, cwd=folder, check=True, capture_output=True)
    again = subprocess.run(
        [*program, "runs", "reproduce", "last"],
        cwd=folder,
        env={**os.environ, "MLEREDUX_RUNS_DIR": "runs #3"},
        capture_output=True,
        text=True,
    )
    assert again.returncode == 0 and "identical" in again.stdout, again.stdout + again.stderr


def test_runs_that_can_not_be_reproduced_are_reported(run_agent: Any, store: Any) -> None:
    run = run_agent(SOLUTION)
    with pytest.raises(
        MlereduxError, match=re.escape("other.py not found in the run's code. Available files: solution.py")
    ):
        reproduce(run, store, current(), entry="other.py")
    with pytest.raises(MlereduxError, match="has no Python code"):
        entry_of({"notes.md": ""})
    with pytest.raises(MlereduxError, match=r"Several files could create the submission: a\.py, b\.py"):
        entry_of({"a.py": "", "b.py": ""})
    (run.path / "report.json").unlink()
    with pytest.raises(MlereduxError, match="has no graded submission to reproduce"):
        reproduce(run, store, current())


def test_links_out_of_the_code_are_not_followed(run_agent: Any) -> None:
    run = run_agent(SOLUTION)
    (run.output_dir / "code" / "leak.py").symlink_to("/etc/passwd")
    (run.output_dir / "code" / "folder").symlink_to("/etc")
    from mleredux_artifact_notes.solutions import final_code

    assert set(final_code(run)) == {"solution.py"}


@pytest.mark.parametrize(
    ("first", "second", "equal", "reason"),
    [
        ("id,y\n1,0.5\n", "id,y\n1,0.5\n", True, None),
        ("id,y\n1,0.5\n", "id,y\n1,0.5000000001\n", True, None),
        ("id,y\n1,0.5\n", "id,y\n1,0.6\n", False, None),
        ("id,y\n1,1e9\n", "id,y\n1,1000000001\n", True, None),
        ("id,y\n1,cat\n", "id,y\n1,dog\n", False, None),
        ("id,y\n1,nan\n", "id,y\n1,0\n", False, None),
        ("id,y\n1,0\n", "id,y\n", False, "one of the files ends at row 1"),
        ("id,y\n1,0\n", "id,y\n1\n", False, "row 1 has different columns"),
    ],
)
def test_submissions_are_compared_by_bytes_and_values(
    tmp_path: Path, first: str, second: str, equal: bool, reason: str | None
) -> None:
    for name, text in (("first", first), ("second", second)):
        (tmp_path / name).write_text(text)
    found = compare(tmp_path / "first", tmp_path / "second", 1e-6)
    assert (found.equal, found.reason) == (equal, reason)


@pytest.mark.docker
@pytest.mark.usefixtures("docker_engine")
def test_a_run_in_a_container_is_reproduced_in_its_own_image(mleredux_home: Path) -> None:
    import mleredux
    from mleredux._core.store import RunStore

    run = mleredux.run("wine", agent="dummy", sandbox="docker", runs_dir=mleredux_home / "runs")
    assert run.state is State.DONE, run.message
    store = RunStore(mleredux_home / "runs")
    result = reproduce(run, store, current())
    assert result["verdict"] == "identical", result
    assert store.get(result["repetition"]).use.image == run.use.image
    verdict = verify_run(run, store, current()).verdict
    assert verdict.status == "verified", verdict
    assert len(list((run.logs_dir / "verify").iterdir())) == 1 and not (run.path / ".verify").exists()


@pytest.mark.parametrize("check", testing.checks("notes"))
def test_the_plugin_conforms(check: testing.Check, tmp_path: Path) -> None:
    check(tmp_path)


def test_a_notebook_in_the_output_runs_again_as_in_jupyter(tmp_path: Path) -> None:
    """Lines that begin with % inside expressions and texts are code, magics and commands run."""
    sources = [
        "%%time\nx = (17\n% 5)\ntext = '''\n%kept\n'''\nnames = !echo shell",
        "%run helper.py\nsubmission = repr((x, text, list(names), NAME))",
        "import os\nopen(os.environ['MLEREDUX_SUBMISSION'], 'w').write(submission)",
    ]
    first, second, scratch = (tmp_path / name for name in ("first", "second", "scratch"))
    for folder in (first / "code", second, scratch):
        folder.mkdir(parents=True)
    book = {"cells": [{"cell_type": "code", "source": source} for source in sources]}
    (first / "code" / "book.ipynb").write_text(json.dumps(book))
    (first / "code" / "helper.py").write_text("NAME = 'helper'")
    run: Any = SimpleNamespace(output_dir=first)
    entry = copy_programs(run, second, "book.ipynb")
    folders = {
        "OUTPUT_DIR": second,
        "SCRATCH_DIR": scratch,
        "DATA_DIR": tmp_path,
        "SUBMISSION": second / "submission.csv",
    }
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, **{f"MLEREDUX_{name}": str(place) for name, place in folders.items()}}
    ended = subprocess.run(["sh", "-c", RUNNER, "sh", entry], env=env, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert (second / "submission.csv").read_text() == repr((2, "\n%kept\n", ["shell"], "helper"))
