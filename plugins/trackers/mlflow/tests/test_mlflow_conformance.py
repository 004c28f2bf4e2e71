"""The plugin keeps the contract, its index is current, and it has no cost until a run is tracked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import mleredux_testing as testing
import pytest

_ONE_EVENT = """
import json, sys
from datetime import UTC, datetime
from mleredux.models import Event, Limits, RunPlan
from mleredux._core.plugins import Catalogue
from mleredux._core.store import RunStore
caller = Catalogue().hook("mleredux_run_event")
assert [found.plugin_name for found in caller.get_hookimpls()].count("mlflow") == 1
store = RunStore(sys.argv[1])
run = store.create(RunPlan(task="t", agent="a", sandbox="s", seed=0, limits=Limits()), "d")
for implementation in caller.get_hookimpls():
    event = Event(seq=1, time=datetime.now(UTC), type="state", data={"state": "done"})
    implementation.function(*({"run": run, "event": event}[name] for name in implementation.argnames))
print(json.dumps(sorted(name for name in ("mlflow", "mleredux_tracker_mlflow.follower") if name in sys.modules)))
"""


def test_the_plugin_keeps_the_contract() -> None:
    testing.check_plugin("mlflow")


def test_without_a_tracking_uri_nothing_is_imported_and_nothing_is_written(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if "MLFLOW" not in name}
    command = [sys.executable, "-c", _ONE_EVENT, str(tmp_path)]
    answer = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout) == []
    assert not list(tmp_path.rglob("*mlflow*"))


def test_an_invalid_setting_is_reported_in_one_line_and_ends_no_run(tmp_path: Path) -> None:
    environment = {**os.environ, "MLFLOW_TRACKING_URI": "http://127.0.0.1:9", "MLEREDUX_MLFLOW_WAIT": "soon"}
    command = [sys.executable, "-c", _ONE_EVENT, str(tmp_path)]
    answer = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert json.loads(answer.stdout) == ["mleredux_tracker_mlflow.follower"], answer.stderr
    assert answer.stderr.splitlines() == [
        "Runs are not sent to MLflow: MLEREDUX_MLFLOW_WAIT='soon' is not a non-negative number. "
        "Example: MLEREDUX_MLFLOW_WAIT=30."
    ]


@pytest.mark.parametrize("variable", ["MLFLOW_TRACKING_URI", "MLEREDUX_MLFLOW_TRACKING_URI"])
def test_the_uri_of_mleredux_comes_before_that_of_mlflow(variable: str) -> None:
    from mleredux_tracker_mlflow.settings import tracking_uri

    others = {"MLFLOW_TRACKING_URI": "http://a", "MLEREDUX_MLFLOW_TRACKING_URI": "http://b"}
    assert tracking_uri(others) == "http://b"
    assert tracking_uri({variable: "http://c"}) == "http://c"
    assert tracking_uri({variable: ""}) is None
