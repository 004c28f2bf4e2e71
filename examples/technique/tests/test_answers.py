"""Who knows the truth gets full marks; who lists everything, or nothing, does not."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

TASK = "constant-columns+planted-1@toy"


@pytest.fixture
def mleredux(shared):
    """The command line, with the toy task of the conformance kit; gives what it prints as JSON."""

    def call(*words):
        command = [sys.executable, "-m", "mleredux", "-p", "mleredux_testing.toys", *words, "--json"]
        environment = {**os.environ, "MLEREDUX_DATA_ROOT": str(shared / "data")}
        ended = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout)

    return call


def test_answers_are_told_apart(mleredux, shared, tmp_path):
    mleredux("prepare", TASK)
    prepared = shared / "data" / TASK / "prepared"
    truth = json.loads((prepared / "private" / "truth.json").read_bytes())["shares"]
    features = json.loads((prepared / "public" / "question.json").read_bytes())["features"]
    assert len(truth) >= 2

    def graded(shares):
        path = tmp_path / "constant-columns_analysis.json"
        columns = [{"column": name, "share": share, "drop": True} for name, share in shares.items()]
        path.write_text(json.dumps({"columns": columns}))
        return mleredux("grade", str(path), TASK)

    perfect = graded(truth)
    assert perfect["score"] == 1.0
    assert perfect["details"]["recommendation"][0].startswith("leave out: `")
    assert graded({})["score"] < 0.1
    assert graded(dict.fromkeys(features, 1.0))["score"] < 0.5
