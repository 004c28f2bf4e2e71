"""Experiments are executed once for each cell, whatever interrupts them, and keep to their frozen plan."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest
from mleredux.errors import MlereduxError
from mleredux.plugin.artifact import Cause, RunStore, State
from mleredux.plugin.command import current
from mleredux_experiments.execution.experiment import extend, find, start
from mleredux_experiments.execution.plan import make_plan
from mleredux_testing.launches import wait_for

ARMS = {name: {"agent": "dummy", "sandbox": "process"} for name in ("v1", "v2")}


def document(**experiment: Any) -> dict[str, Any]:
    return {"experiment": {"name": "test", "tasks": ["wine"], "seeds": [0], **experiment}, "arms": ARMS}


def started(folder: Path, told: dict[str, Any]) -> Any:
    return start(make_plan(told), current(), runs_dir=folder, data_dir=None)


def cells(folder: Path) -> Counter[tuple[str, str, int]]:
    rows = RunStore(folder).rows()
    return Counter((row["arm"], row["task"], row["seed"]) for row in rows if row["status"] == "done")


def test_killed_at_any_time_nothing_is_lost_and_nothing_is_run_twice(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    arms = "".join(f'[arms.{name}]\nagent = "dummy"\nsandbox = "process"\n' for name in ARMS)
    plan.write_text(f'[experiment]\nname = "test"\ntasks = ["wine"]\nseeds = [0, 1]\n{arms}')
    runs = tmp_path / "runs"
    command = [sys.executable, "-m", "mleredux", "experiment", "run", str(plan), "--runs-dir", str(runs)]

    def until(reached: Any) -> None:
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        ) as it:
            while it.poll() is None and not reached():
                time.sleep(0.01)
            os.kill(it.pid, signal.SIGKILL)

    until(lambda: list(runs.glob("*/run.json")))  # a run was just made
    until(lambda: list(runs.glob("*/output/submission.csv")))
    until(lambda: sum(cells(runs).values()))  # one has ended
    ended = set(cells(runs))
    ids = {row["id"] for row in RunStore(runs).rows() if row["status"] == "done"}
    last = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
    assert json.loads(last.stdout)["ended"] == 4
    assert ended <= set(cells(runs)) and set(cells(runs).values()) == {1} and len(cells(runs)) == 4
    rows = RunStore(runs).rows()
    assert ids <= {row["id"] for row in rows} and len(rows) == 4


def has_ended(process: psutil.Process) -> bool:
    """Return whether a process has ended, reaped by its new parent or not yet."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_the_agent_of_a_killed_program_ends_before_an_experiment_gets_its_slot(tmp_path: Path) -> None:
    """Even while the program's parent has not reaped it."""
    runs, plan, agent = tmp_path / "runs", tmp_path / "plan.toml", tmp_path / "holder.py"
    plan.write_text(
        '[experiment]\nname = "test"\ntasks = ["wine"]\nseeds = [0]\n'
        '[arms.v1]\nagent = "dummy"\nsandbox = "process"\nlimits = {cpus = 1}\n'
    )
    agent.write_text("import os, pathlib, time\npathlib.Path('pid').write_text(str(os.getpid()))\ntime.sleep(600)\n")
    program, environment = [sys.executable, "-m", "mleredux"], {**os.environ, "MLEREDUX_CPUS": "1"}
    words = ["run", "wine", "--agent", str(agent), "--sandbox", "process", "--cpus", "1"]
    with subprocess.Popen([*program, *words, "--runs-dir", str(runs)], env=environment) as holder:
        try:
            [path] = wait_for(lambda: [path for path in runs.glob("*/output/pid") if path.read_text()], 120)
            held = psutil.Process(int(path.read_text()))
            words = ["experiment", "run", str(plan), "--runs-dir", str(runs)]
            with subprocess.Popen([*program, *words], env=environment) as experiment:
                assert wait_for(lambda: len(list(runs.glob("*/run.json"))) == 2, 120)
                assert experiment.poll() is None and not has_ended(held)
                holder.kill()
                assert experiment.wait(240) == 0
            assert has_ended(held) and set(cells(runs).values()) == {1}
        finally:
            holder.kill()


def test_deviations_after_the_first_result_are_recorded_and_arms_stay_as_they_were(tmp_path: Path) -> None:
    found = started(tmp_path, document(margin=1.0))
    found.run()
    assert not found.record.deviations
    changed = started(tmp_path, document(margin=2.0))
    assert [(one.what, one.results) for one in changed.record.deviations] == [
        ("The plan was changed: experiment.margin: 1.0 → 2.0.", 2)
    ]
    other = {**document(margin=2.0), "arms": {**ARMS, "v2": {**ARMS["v2"], "limits": {"time_limit": "9m"}}}}
    with pytest.raises(MlereduxError, match=r"Arm v2 was changed after its first run \(limits.time_limit: None → 540"):
        started(tmp_path, other)
    extend(changed, seeds=[7])
    assert started(tmp_path, document(margin=2.0)).status()["total"] == 4
    again = find("test", str(tmp_path), current())
    assert [one.what for one in again.record.deviations][1:] == ["Extended by seeds 7."]  # type: ignore[union-attr]


def test_a_task_is_added_with_its_context(tmp_path: Path) -> None:
    def told(*tasks: str) -> dict[str, Any]:
        arm = {**ARMS["v1"], "context": "known-{task}.md", "contexts": {task: f"On {task}." for task in tasks}}
        return {"experiment": {"name": "test", "tasks": list(tasks)}, "arms": {"v1": arm}}

    found = started(tmp_path, told("wine"))
    found.run()
    with pytest.raises(MlereduxError, match=r"arms.v1.context: the text for digits is missing"):
        extend(found, tasks=["digits"])
    larger = started(tmp_path, told("wine", "digits"))
    assert [place.plan.context for place in larger.places()] == ["On wine.", "On digits."]
    with pytest.raises(MlereduxError, match=r"Arm v1 was changed after its first run \(contexts.wine"):
        started(tmp_path, json.loads(json.dumps(told("wine", "digits")).replace("On wine", "About wine")))


def test_what_broke_is_run_again_and_the_old_attempt_is_kept(tmp_path: Path) -> None:
    found = started(tmp_path, document())
    place = found.places()[0]
    broken = found.store.create(place.plan, "x")
    for state in (State.PREPARING, State.PRODUCING):
        broken.enter(state)
    broken.enter(State.FAILED, cause=Cause.ENVIRONMENT_BROKE, message="No engine.")
    found.run()
    assert (found.status()["ended"], found.status()["broken"]) == (1, 1)
    found.run(broken=True)
    told = found.status()
    assert (told["ended"], told["broken"], told["attempts"]) == (2, 0, 3)
    assert found.store.get(broken.id).cause is Cause.ENVIRONMENT_BROKE


def test_a_budget_starts_no_new_runs(tmp_path: Path) -> None:
    found = started(tmp_path, {**document(seeds=[0, 1]), "stop": {"max_hours": 1e-9}})
    found.run()
    assert found.status()["ended"] == 1
    found.run()
    assert found.status()["ended"] == 1 and "budget of 0.00 s is used up" in found.status()["stopped"]


def test_one_process_at_a_time_executes_an_experiment(tmp_path: Path) -> None:
    found = started(tmp_path, document())
    with found.claim(), pytest.raises(MlereduxError, match="is being executed by another process"):
        started(tmp_path, document()).run()
