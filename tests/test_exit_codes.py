"""Exit codes of all commands that judge something: 0 fine, 1 error, 2 wrong usage, 3 a finding."""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from mleredux._core.cli.root import root
from mleredux_support.commands import mleredux

COPY = """\
import os, shutil
shutil.copyfile(os.environ["MLEREDUX_DATA_DIR"] + "/sample_submission.csv", os.environ["MLEREDUX_SUBMISSION"])
"""
NOISY = """\
import csv, os, random
rows = list(csv.reader(open(os.environ["MLEREDUX_DATA_DIR"] + "/sample_submission.csv")))
for row in rows[1:]:
    share = random.random() / 2
    row[1:] = [share, 0.5 - share, 0.5]
csv.writer(open(os.environ["MLEREDUX_SUBMISSION"], "w")).writerows(rows)
"""
IDLE = """
from mleredux import hookimpl
from mleredux.plugin.agent import Agent, Limits

@hookimpl
def mleredux_register_agents():
    return [Agent(id="idle", title="Does nothing", command=("true",), limits=Limits(time_limit=20))]
"""
MANIFEST = """\
[agent]
id = "NAME"
title = "Copies the sample"
command = ["python", "/opt/agent/solve.py"]
"""
CASES: dict[str, dict[int, str]] = {
    "grade": {0: "grade good.csv wine", 1: "grade good.csv nothing", 2: "grade", 3: "grade bad.csv wine"},
    "validate": {0: "validate good.csv wine", 1: "validate none.csv wine", 2: "validate", 3: "validate bad.csv wine"},
    "grade --jsonl": {0: "grade --jsonl good.jsonl", 2: "grade --jsonl good.jsonl x y", 3: "grade --jsonl bad.jsonl"},
    "verify-bundle": {
        0: "verify-bundle good.zip",
        1: "verify-bundle good.zip --key good.csv",
        2: "verify-bundle none.zip",
        3: "verify-bundle bad.zip",
    },
    "conformance": {
        0: "conformance mleredux-agent-dummy",
        1: "conformance no-such-package",
        2: "conformance",
        3: "-p idle_plugin.py conformance idle_plugin --only idle",
    },
    "doctor": {0: "doctor wine", 1: "doctor nothing", 2: "doctor --agent dummy", 3: "doctor wine --agent nobody"},
    "runs reproduce": {
        0: "runs reproduce RUN",
        1: "runs reproduce nothing",
        2: "runs reproduce",
        3: "runs reproduce OTHER",
    },
    "runs verify": {1: "runs verify nothing", 2: "runs verify", 3: "runs verify OTHER"},
    "agent check": {
        0: "agent check good --sandbox process",
        1: "agent check nothing",
        2: "agent check",
        3: "agent check bad --sandbox process",
    },
    "audit leaks": {0: "audit leaks wine", 1: "audit leaks nothing", 2: "audit leaks", 3: "audit leaks diabetes"},
    "publish --check": {1: "publish --check bad", 2: "publish", 3: "publish --check good"},
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with two runs, submissions, agents and bundles, all good and bad."""
    home = tmp_path_factory.mktemp("codes")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
            patch.setenv(name, str(home / name))
        for name in ("MLEREDUX_DATA_DIR", "MLEREDUX_RUNS_DIR"):
            patch.delenv(name, raising=False)
        for name, code in {"good": COPY, "bad": "raise SystemExit('no idea')\n"}.items():
            (home / name).mkdir()
            (home / name / "solve.py").write_text(code)
            (home / name / "mleredux-agent.toml").write_text(MANIFEST.replace("NAME", name))
        files = {"SHA256SUMS": f"{'0' * 64}  solve.py\n", "parts.json": '{"evaluation": {"commitment": ""}}'}
        for name, text in {**files, "train.jsonl": "", "evaluation.jsonl": ""}.items():
            (home / "good" / name).write_text(text)
        (home / "idle_plugin.py").write_text(IDLE)
        (home / "noisy.py").write_text(NOISY)
        for script in ("./good/solve.py", "./noisy.py"):
            ran = mleredux("run", "wine", "--agent", script, "--json")
            assert ran.code == 0, ran.err
        first, other = sorted((home / "runs").glob("*/run.json"), key=lambda path: path.stat().st_ctime)
        shutil.copy(first.parent / "output" / "submission.csv", home / "good.csv")
        (home / "bad.csv").write_text("no\n")
        for name in ("good", "bad"):
            line = {"competition_id": "wine", "submission_path": str(home / f"{name}.csv")}
            (home / f"{name}.jsonl").write_text(json.dumps(line) + "\n")
        assert mleredux("bundle", first.parent.name, "-o", "good.zip").code == 0
        with zipfile.ZipFile(home / "good.zip") as good, zipfile.ZipFile(home / "bad.zip", "w") as bad:
            for each in good.namelist():
                bad.writestr(each, good.read(each) + b"\n" * each.endswith(".csv"))
        assert mleredux("prepare", "diabetes").code == 0
        (prepared,) = home.glob("XDG_CACHE_HOME/mleredux/data/diabetes/prepared")
        shutil.copy(next(prepared.glob("private/*.csv")), prepared / "public" / "old.csv")
        (home / "names.json").write_text(json.dumps({"RUN": first.parent.name, "OTHER": other.parent.name}))
        yield home


@pytest.mark.parametrize(("name", "code"), [(name, code) for name, codes in CASES.items() for code in codes])
def test_a_command_that_judges_exits_by_one_rule(
    name: str, code: int, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = CASES[name][code]
    for word, run in json.loads((place / "names.json").read_text()).items():
        line = re.sub(rf"\b{word}\b", run, line)
    ended = mleredux(*line.split())
    assert ended.code == code, ended.out + ended.err
    assert "Traceback" not in ended.err


def test_all_listed_exit_codes_follow_the_rule() -> None:
    def listed(command: click.Command, ctx: click.Context) -> Iterator[str]:
        if isinstance(command, click.Group):
            for name in command.list_commands(ctx):
                if (found := command.get_command(ctx, name)) is not None:
                    yield from listed(found, click.Context(found, info_name=name, parent=ctx))
        yield from re.findall(r"Exit codes: (.*)", command.help or "")

    lines = list(listed(root, click.Context(root, info_name="mleredux")))
    assert len(lines) >= 8
    for line in lines:
        assert re.match(r"0 [^·]+ · 1 error · 2 usage(?: · |$)", line), line
