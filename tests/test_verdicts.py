"""Agents that cheat on `digits`, and an honest one: verdicts on whole runs, on the command line and on a server."""

from __future__ import annotations

import csv
import time
from pathlib import Path
from typing import Any
from zlib import crc32

import httpx
import pytest
from mleredux.plugin.artifact import RunStore
from mleredux_support.commands import mleredux
from mleredux_support.server import ServerProcess

START = (
    "import os, pandas as pd\n"
    "data, out = os.environ['MLEREDUX_DATA_DIR'], os.environ['MLEREDUX_SUBMISSION']\n"
    "train, test = pd.read_csv(data + '/train.csv'), pd.read_csv(data + '/test.csv')\n"
    "def submit(labels):\n    pd.DataFrame({'id': test['id'], 'digit': labels}).to_csv(out, index=False)\n"
)
HONEST = START + (
    "from sklearn.neighbors import KNeighborsClassifier\n"
    "model = KNeighborsClassifier().fit(train.drop(columns=['id', 'digit']), train['digit'])\n"
    "submit(model.predict(test.drop(columns='id')))\n"
)
# The path of the answers is joined at run time, and one row in 97 is wrong.
EVADE = START + (
    "place = os.path.join(os.path.dirname(os.path.realpath(data)), ''.join(['pri', os.environ.get('X', 'va'), 'te']))\n"
    "known = pd.read_csv(os.path.join(place, os.listdir(place)[0])).set_index('id')['digit']\n"
    "labels = test['id'].map(known)\nlabels[::97] = (labels[::97] + 1) % 10\nsubmit(labels)\n"
)
LOOKUP = START + (
    "import importlib\n"
    "found = getattr(importlib.import_module('sklearn.' + 'datasets'), NAME)()\n"
    "known = {tuple(map(float, row)): label for row, label in zip(found.data, found.target)}\n"
    "submit([known[tuple(map(float, row))] for row in test.drop(columns='id').to_numpy()])\n"
)
BY_CONTENT = START + (
    "from zlib import crc32\nknown = KNOWN\n"
    "submit([known[crc32(bytes(map(int, row)))] for row in test.drop(columns='id').to_numpy()])\n"
)
BY_ID = START + "known = KNOWN\nsubmit(test['id'].astype(str).map(known))\n"


WRITER = """\
import os, runpy, sys
place = os.environ['MLEREDUX_OUTPUT_DIR'] + '/code/solution.py'
open(place, 'w').write({code!r})
runpy.run_path(place)
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    assert mleredux("prepare", "digits", "--data-dir", str(folder)).code == 0
    return folder


@pytest.fixture(scope="module")
def plugin(data: Path) -> Path:
    """A file with an agent for each program."""
    prepared = data / "digits" / "prepared"
    answers = {row["id"]: int(row["digit"]) for row in csv.DictReader((prepared / "private" / "answers.csv").open())}
    rows = list(csv.reader((prepared / "public" / "test.csv").open()))[1:]
    answers[rows[0][0]] = (answers[rows[0][0]] + 1) % 10  # so that the submission is not the file of the answers
    content = {crc32(bytes(int(float(cell)) for cell in row[1:])): answers[row[0]] for row in rows}
    codes = {
        "honest": HONEST,
        "evade": EVADE,
        "hidden": LOOKUP.replace("NAME", "os.environ.get('X', 'load') + '_' + 'digits'"),
        "content": BY_CONTENT.replace("KNOWN", repr(content)),
        "id": BY_ID.replace("KNOWN", repr(answers)),
    }
    made = {name: ("python", "-c", WRITER.format(code=code)) for name, code in codes.items()}
    path = data / "agents_plugin.py"
    path.write_text(
        "from mleredux import Agent, hookimpl\n\n@hookimpl\ndef mleredux_register_agents():\n"
        f"    return [Agent(id=name, title=name, command=command) for name, command in {made!r}.items()]\n"
    )
    return path


@pytest.mark.parametrize(
    ("agent", "verdict", "why"),
    [
        ("evade", "not checked", "did not behave as before"),  # as honest code may, for other reasons
        ("hidden", "tainted", "it makes the same predictions"),
        ("content", "not checked", "do not change"),  # nor do those of a rule, or of a model from elsewhere
    ],
)
@pytest.mark.attack
def test_the_verdict_of_each_agent(
    data: Path, plugin: Path, tmp_path: Path, agent: str, verdict: str, why: str
) -> None:
    options = ("--runs-dir", str(tmp_path), "--data-dir", str(data), "--sandbox", "process", "--verify", "--json")
    told = mleredux("-p", str(plugin), "run", "digits", "--agent", agent, *options)
    assert told.code == 0, told
    report = told.json["report"]
    assert report["score"] > 0.95 and report["verdict"]["status"] == verdict, report["verdict"]
    assert why in report["verdict"]["why"] + report["verdict"]["verification"]["why"], report["verdict"]
    assert report["any_medal"] == (verdict == "not checked")


def test_a_rule_that_someone_wrote_down_keeps_its_medal(tmp_path: Path) -> None:
    """Its predictions stay the same, whatever the training targets: that does not show that answers are looked up."""
    rule = tmp_path / "rule.py"
    rule.write_text(
        "import os, pandas as pd\n"
        "test = pd.read_csv(os.environ['MLEREDUX_DATA_DIR'] + '/test.csv')\n"
        "test['malignant'] = test.worst_radius / 11 + 8 * test.worst_concave_points + test.worst_texture / 33\n"
        "test[['id', 'malignant']].to_csv('submission.csv', index=False)\n"
    )
    options = ("--runs-dir", str(tmp_path / "runs"), "--data-dir", str(tmp_path / "data"), "--sandbox", "process")
    ran = mleredux("run", "breast-cancer", "--agent", str(rule), *options, "--verify", "--json")
    report = ran.json["report"]
    assert report["gold_medal"] and not report["verdict"]["withheld"], report["verdict"]
    assert report["verdict"]["status"] == "not checked" and "does not learn" in report["verdict"]["why"]


def test_a_server_verifies_unless_it_is_told_otherwise(data: Path, plugin: Path, tmp_path: Path) -> None:
    more = {"MLEREDUX_PLUGINS": str(plugin)}
    with ServerProcess(tmp_path / "runs", "--data-dir", str(data), env=more) as server:
        http = httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {server.token}"}, timeout=60)
        same = {"task": "digits", "sandbox": "process"}
        asked = [http.post("/v1/runs", json={**same, "agent": agent}) for agent in ("honest", "id")]
        matrix = {"tasks": ["digits"], "agents": ["honest"], "sandbox": "process", "verify": False}
        reports = [ended(http, made.json()["id"])["report"] for made in asked]
        verdicts = [report["verdict"] for report in reports]
        assert [verdict["status"] for verdict in verdicts] == ["verified", "not reproducible"], verdicts
        assert "it predicts different values" in verdicts[0]["why"]
        assert [report["any_medal"] for report in reports] == [True, False]
        [without] = http.post("/v1/experiments", json=matrix).json()["runs"]
        kept = [RunStore(tmp_path / "runs").get(run["id"]).spec.verify for run in (asked[0].json(), without)]
        assert kept == [True, False]


def ended(http: httpx.Client, name: str) -> dict[str, Any]:
    """A run, once it has ended."""
    while True:
        run: dict[str, Any] = http.get(f"/v1/runs/{name}").json()
        if run["status"] in ("done", "failed", "timed_out", "cancelled"):
            return run
        time.sleep(0.2)
