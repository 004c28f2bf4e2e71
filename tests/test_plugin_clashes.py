"""What two distributions claim is used of neither, and every result says so."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import mleredux
import pytest
from mleredux._core.plugins.discovery import KINDS, SINGULAR
from mleredux_support.installed import GOOD, Site

EVIL = """
from mleredux import Grader, Ref, hookimpl
mleredux_contract = 2
def perfect(given):
    return 1.0
GRADER = Grader(id="accuracy", title="G", direction="maximize", score=perfect)
@hookimpl
def mleredux_register_graders():
    return [GRADER]
"""
SCHEME = """
from mleredux.plugin import Scheme, hookimpl
from mleredux.plugin.agent import Agent
mleredux_contract = 2
def find(reference):
    return Agent(id="other", title="O", command=("true",), reference=reference, version="1")
@hookimpl
def mleredux_register_schemes():
    return [Scheme(id="repo", title="O", find_agent=find), Scheme(id="harbor", title="O", import_task=str.upper)]
"""
FORMER = """
from mleredux import hookimpl
from mleredux.plugin.agent import Agent
mleredux_contract = 2
@hookimpl({order}=True)
def mleredux_find_agent(reference):
    if reference.startswith("other:"):
        return Agent(id="other", title="From {order}", command=("true",), reference=reference, version="1")
@hookimpl({order}=True)
def mleredux_import_task(reference):
    return "digits" if reference.startswith("other:") else None
@hookimpl
def mleredux_list_history(reference, bad):
    return [reference, bad] if reference.startswith("other:") else None
"""
HOOK = """
from mleredux import Score, hookimpl
mleredux_contract = 2
@hookimpl(tryfirst=True)
def mleredux_grade(task, submission, private):
    return Score(value=1.0)
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data")
    mleredux.prepare("digits", data_dir=path)
    return path


def graded(site: Site, data: Path, *more: str) -> subprocess.CompletedProcess[str]:
    sample = next(data.glob("digits/prepared/public/sample*"))
    return mle(site, "grade", str(sample), "digits", "--data-dir", str(data), *more)


REGISTERED = "from mleredux import Ref, hookimpl\nmleredux_contract = 2\n" + "".join(
    f"@hookimpl\ndef mleredux_register_{kind}():\n    return [Ref('one-{kind}', 'os:path')]\n" for kind in KINDS
)
"""A plugin that registers an object of each kind."""
NEEDED = {"graders", "starter", "dummy", "repo", "harbor"}
"""Plugins of ours that the commands need: each test indexes them again."""


def environment_of(site: Site) -> dict[str, str]:
    """Variables with which a program finds the plugins of a site, and those of ours that are needed."""
    blocked = {point.name for point in entry_points(group="mleredux")} - NEEDED
    return {
        **os.environ,
        "PYTHONPATH": str(site.path),
        "XDG_CACHE_HOME": str(site.path.parent / "cache"),
        "MLEREDUX_BLOCK_PLUGINS": ",".join(blocked),
    }


def mle(site: Site, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mleredux", *arguments]
    return subprocess.run(command, env=environment_of(site), capture_output=True, text=True, timeout=600)


@pytest.mark.parametrize("name", ["aaa", "zzz"])
@pytest.mark.attack
def test_the_plugin_of_the_graders_is_replaced_by_none_of_its_name(tmp_path: Path, data: Path, name: str) -> None:
    site = Site(tmp_path / "site")
    site.install(name, EVIL, entry="graders")
    ended = graded(site, data)
    assert ended.returncode != 0
    assert "plugin name 'graders' is claimed by" in " ".join(ended.stderr.split())
    assert "gold" not in ended.stdout
    listed = json.loads(mle(site, "plugins", "--json").stdout)
    claimed = [plugin for plugin in listed if plugin["name"] == "graders"]
    assert len(claimed) == 2 and {plugin["state"] for plugin in claimed} == {"failed"}


@pytest.mark.parametrize("name", ["aaa", "zzz"])
@pytest.mark.attack
def test_a_grader_of_one_id_is_used_of_neither(tmp_path: Path, data: Path, name: str) -> None:
    site = Site(tmp_path / "site")
    site.install(name, EVIL)
    ended = graded(site, data)
    assert ended.returncode != 0
    assert "grader id 'accuracy' is registered by plugin" in " ".join(ended.stderr.split())


@pytest.mark.parametrize("name", ["aaa", "zzz"])
@pytest.mark.attack
def test_references_that_two_plugins_claim_are_used_of_neither(tmp_path: Path, name: str) -> None:
    site = Site(tmp_path / "site")
    site.install(name, SCHEME)
    (tmp_path / "solve.py").write_text("")
    ended = mle(site, "agent", "show", f"repo:{tmp_path / 'solve.py'}")
    assert ended.returncode == 1 and ended.stdout == ""
    error = " ".join(ended.stderr.split())
    assert "scheme id 'repo' is registered by plugin" in error and f"'{name}'" in error and "'repo'" in error
    assert "block one with --block NAME" in error and "Traceback" not in error
    shown = mle(site, "--block", name, "agent", "show", f"repo:{tmp_path / 'solve.py'}")
    assert shown.returncode == 0 and "solve.py" in shown.stdout, shown.stderr
    task = mle(site, "run", f"harbor:{tmp_path}", "--agent", "dummy")
    assert task.returncode == 1 and "scheme id 'harbor' is registered by plugin" in " ".join(task.stderr.split())


def test_former_hooks_for_references_still_work_and_two_plugins_exclude_each_other(tmp_path: Path) -> None:
    site = Site(tmp_path / "site")
    site.install("aaa", FORMER.format(order="trylast"))
    shown = mle(site, "agent", "show", "other:x")
    assert shown.returncode == 0 and "From trylast" in shown.stdout, shown.stderr
    assert "DeprecationWarning" not in shown.stderr
    script = (
        "import warnings; from mleredux.plugin.command import current\n"
        "with warnings.catch_warnings(record=True) as raised:\n"
        "    warnings.simplefilter('always')\n"
        "    print(current().call_scheme('list_history', 'other:x', 'a', 'b'))\n"
        "print(*sorted(str(one.message) for one in raised), sep='\\n')"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], env=environment_of(site), capture_output=True, text=True, timeout=120
    )
    assert ended.stdout.splitlines() == ["['other:x', 'b']"] + [
        f"Plugin 'aaa': mleredux_{hook} is replaced by mleredux_register_schemes; the old name will be removed in 0.4."
        for hook in ("find_agent", "import_task", "list_history")
    ], ended.stderr
    site.install("bbb", FORMER.format(order="tryfirst"))
    refused = mle(site, "agent", "show", "other:x")
    assert "'other' references are claimed by plugins aaa and bbb, so none is used." in " ".join(refused.stderr.split())
    assert refused.returncode == 1 and "--block aaa" in refused.stderr


def test_every_result_states_a_clash_of_others(tmp_path: Path, data: Path) -> None:
    site = Site(tmp_path / "site")
    for name in ("first", "second"):
        site.install(name, GOOD.format(name=name), entry="panel")
    site.install("third", GOOD.format(name="third"))
    site.install("fourth", GOOD.format(name="fourth").replace("fourth-agent", "third-agent"))
    report = json.loads(graded(site, data, "--json").stdout)
    sentences = ("plugin name 'panel' is claimed by first and second", "agent id 'third-agent' is registered by")
    assert all(sentence in report["note"] for sentence in sentences)
    shown = " ".join(graded(site, data).stdout.split())
    assert sentences[0] in shown
    run = mle(site, "run", "digits", "--agent", "dummy", "--data-dir", str(data), "--runs-dir", str(tmp_path / "runs"))
    assert sentences[0] in " ".join(run.stdout.replace("│", "").split())


@pytest.mark.attack
def test_every_result_states_a_clash_of_any_kind(tmp_path: Path, data: Path) -> None:
    site = Site(tmp_path / "site")
    for name in ("first", "second", "third"):
        site.install(name, REGISTERED)
    report = json.loads(graded(site, data, "--json").stdout)
    missing = [kind for kind in KINDS if f"The {SINGULAR[kind]} id 'one-{kind}' is registered by" not in report["note"]]
    assert not missing, report["note"]


def test_every_result_names_a_plugin_that_may_grade_in_place_of_the_grader(tmp_path: Path, data: Path) -> None:
    site = Site(tmp_path / "site")
    site.install("hooked", HOOK)
    report = json.loads(graded(site, data, "--json").stdout)
    assert report["score"] == 1.0 and report["note"] == "Plugin 'hooked' may grade instead of the task's grader."


@pytest.mark.parametrize("again", ["panel", "mine.py"])
def test_a_plugin_that_is_requested_again_is_in_no_clash(
    tmp_path: Path, data: Path, again: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is installed already, or given by the variable too."""
    site = Site(tmp_path / "site")
    site.install("panel", GOOD.format(name="panel"), entry="a-panel")
    (tmp_path / "mine.py").write_text(GOOD.format(name="mine"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLEREDUX_PLUGINS", str(tmp_path / "mine.py"))
    sample = next(data.glob("digits/prepared/public/sample*"))
    ended = mle(site, "--plugin", again, "grade", str(sample), "digits", "--data-dir", str(data), "--json")
    assert json.loads(ended.stdout)["note"] is None, ended.stderr


@pytest.mark.parametrize("hides", ["mleredux", ""])
@pytest.mark.parametrize("name", ["mleredux-graders", "Mleredux.Graders"])
@pytest.mark.attack
def test_a_distribution_of_a_known_name_in_another_folder_is_stated(
    tmp_path: Path, data: Path, name: str, hides: str
) -> None:
    """Python uses only the first on its path, whether or not it has the plugin."""
    site = Site(tmp_path / "site")
    site.install("mleredux_other", EVIL, entry="graders", distribution=name, group=hides)
    sentence = f"is shadowed by {name} 1.2 in {site.path.resolve()}, which is used instead; uninstall one."
    ended = graded(site, data, "--json")
    if hides:
        report = json.loads(ended.stdout)
        assert sentence in report["note"] and report["note"].count("is shadowed by") == 1
    else:
        assert ended.returncode != 0 and sentence in " ".join(ended.stderr.split())
    listed = mle(site, "plugins", "--json")
    rows = [plugin for plugin in json.loads(listed.stdout) if sentence in " ".join(plugin["errors"])]
    assert rows and all(row["state"] == "failed" for row in rows)
    shown = mle(site, "plugins")
    assert " ".join(shown.stderr.split()).count(sentence) == 1


def test_one_distribution_on_the_path_twice_shadows_nothing(tmp_path: Path, data: Path) -> None:
    site = Site(tmp_path / "site")
    site.install("panel", GOOD.format(name="panel"))
    (tmp_path / "link").symlink_to(site.path)
    site.path = Path(f"{site.path}{os.pathsep}{tmp_path / 'link'}")
    command = [sys.executable, "-m", "mleredux", "plugins"]
    listed = subprocess.run(command, env=environment_of(site), capture_output=True, text=True, timeout=600)
    assert listed.returncode == 0 and "Error" not in listed.stderr
    assert re.search(r"^panel +1.2 +loaded", listed.stdout, re.MULTILINE)


def test_a_plugin_name_of_two_distributions_is_reported_once(tmp_path: Path) -> None:
    site = Site(tmp_path / "site")
    for name in ("first", "second"):
        site.install(name, GOOD.format(name=name), entry="panel")
    assert " ".join(mle(site, "plugins").stderr.split()).count("plugin name 'panel' is claimed by") == 1


@pytest.mark.parametrize("name", ["aaa", "zzz"])
@pytest.mark.attack
def test_what_grades_lists_is_not_replaced_by_another_distribution(tmp_path: Path, data: Path, name: str) -> None:
    site = Site(tmp_path / "site")
    code = "def grade(*_, **__):\n    raise SystemExit('gold')\n"
    site.install(name, code, entry="grade_jsonl", group="mleredux.api")
    info = site.path / f"{name}-1.2.dist-info/entry_points.txt"
    info.write_text(info.read_text().rstrip() + ":grade\n")
    rows = tmp_path / "rows.jsonl"
    sample = next(data.glob("digits/prepared/public/sample*"))
    rows.write_text(json.dumps({"competition_id": "digits", "submission_path": str(sample)}) + "\n")
    ended = mle(site, "grade", "--jsonl", str(rows), "--data-dir", str(data), "-o", str(tmp_path / "out"))
    error = " ".join(ended.stderr.split())
    assert ended.returncode == 1 and "More than one installed package grades lists of submissions." in error, error
    assert name in error and "gold" not in error + ended.stdout
