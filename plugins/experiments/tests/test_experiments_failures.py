"""Failure analysis on the labelled set: real runs of scripted agents, each with labels by who wrote the scenario."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from mleredux._core.store import Run
from mleredux.errors import MlereduxError
from mleredux.plugin.artifact import RunStore
from mleredux.plugin.command import Catalogue
from mleredux.plugin.host import set_current
from mleredux_experiments.analysis.analysis import analyse
from mleredux_experiments.commands.failures import failures_command as command
from mleredux_experiments.failures import CATEGORIES, Finding
from mleredux_experiments.failures.counts import counts_by_arm, find
from mleredux_experiments.figures.pictures import pictures
from mleredux_experiments.figures.report import page
from mleredux_experiments.results.sources import load
from mleredux_experiments.shared import failures_of
from mleredux_scripted_llm import ScriptedLlm

sys.path.insert(0, str(Path(__file__).parent / "failures"))
from scenarios import LEAKY, PACKED, labels, perform


def unpack_runs(folder: Path) -> None:
    """Unpack the runs of the labelled set, each under its name in the labels."""
    with tarfile.open(PACKED) as archive:
        archive.extractall(folder, filter="data")
    for path in folder.glob("*/run.json"):
        record = json.loads(path.read_bytes())
        path.write_text(json.dumps({**record, "spec": {**record["spec"], "id": path.parent.name}}))


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[Finding]]]:
    folder = tmp_path_factory.mktemp("runs")
    unpack_runs(folder)
    set_current(Catalogue(load=[str(LEAKY)]))  # which declares the leak
    yield {path.name: find(Run(path)) for path in sorted(folder.iterdir())}
    set_current(None)


def test_the_set_has_sixty_runs_of_three_kinds_of_agents(found: dict[str, list[Finding]]) -> None:
    assert set(found) == set(labels())
    assert len(found) >= 60
    assert {label for each in labels().values() for label in each} == set(CATEGORIES) - {"cancelled"}


def test_precision_and_recall(found: dict[str, list[Finding]]) -> None:
    """At least 0.95 and 0.9: over all pairs of a run and a category, and within each category."""
    said = {(run, finding.category) for run, each in found.items() for finding in each if not finding.overcome}
    true = {(run, label) for run, each in labels().items() for label in each}
    for names in (set(CATEGORIES), *({name} for name in CATEGORIES)):
        told, right = ({one for one in every if one[1] in names} for every in (said, true))
        assert len(told & right) >= 0.95 * len(told), sorted(told - right)
        assert len(told & right) >= 0.9 * len(right), sorted(right - told)


def test_the_packed_runs_are_what_the_scenarios_still_do(found: dict[str, list[Finding]], tmp_path: Path) -> None:
    again = find(Run(perform("package", "shell", tmp_path)))
    assert [one.category for one in again] == [one.category for one in found["package-shell"]]


def test_the_primary_one_is_right(found: dict[str, list[Finding]]) -> None:
    first = {run: next((one.category for one in each if not one.overcome), None) for run, each in found.items()}
    wrong = {
        run: (category, labels()[run]) for run, category in first.items() if category != next(iter(labels()[run]), None)
    }
    assert len(wrong) <= 0.05 * len(found), wrong


def test_each_finding_shows_its_line(found: dict[str, list[Finding]]) -> None:
    for run, each in found.items():
        for finding in each:
            assert finding.line.strip(), (run, finding)
            assert finding.where, (run, finding)


def test_counts_compare_arms(found: dict[str, list[Finding]]) -> None:
    counts = counts_by_arm((run.rpartition("-")[2], each) for run, each in found.items())
    assert set(counts) == {"search", "shell", "script"}
    assert counts["search"]["debug-loop"] == 2
    assert counts["script"]["debug-loop"] == 0
    assert sum(sum(each.values()) for each in counts.values()) == len(found)


@pytest.fixture
def failing(add_run: Callable[..., Path], tmp_path: Path) -> Path:
    """Eight tasks: both agents earn medals, or one crashes for want of a package and the other submits nothing."""
    for number in range(8):
        add_run(f"task{number}", "good", 0, medal="gold", score=0.95)
        add_run(f"task{number}", "good", 1, state="failed", cause="agent_crashed")
        for seed in (0, 1):
            path = add_run(f"task{number}", "bad", seed, state="failed", cause="agent_crashed")
            (path / "logs").mkdir()
            (path / "logs" / "agent.log").write_text("start\nModuleNotFoundError: No module named 'torch'\n")
    return tmp_path / "runs"


def test_failures_are_counted_and_compared_between_arms(failing: Path) -> None:
    found = analyse(load(failing, rollouts=True), arms=["good", "bad"])
    assert found.arm("good").outcomes == {"gold": 8, "no submission": 8}
    assert found.arm("bad").outcomes == {"package": 16}
    package = found.arm("bad").failures[0]
    assert (package.category, package.primary, package.runs) == ("package", 16, 16)
    assert (package.line, package.where) == ("ModuleNotFoundError: No module named 'torch'", "logs/agent.log:2")
    more = {one.category: one for one in found.comparisons[0].failures}
    assert (more["package"].a, more["package"].b, more["package"].difference) == (0, 100, 100)
    assert (more["no-submission"].a, more["no-submission"].b) == (50, 100)
    assert more["package"].q == pytest.approx(2 / 2**8)  # all eight signs alike; the other category is as improbable
    picture = next(one for one in pictures(found) if one.name == "outcomes")
    assert "bad has package more often than good (100 and 0 % of runs)" in picture.answer
    assert "No module named" in page(found, pictures(found))


def test_damaged_runs_do_not_hide_the_failures_of_others(tmp_path: Path) -> None:
    unpack_runs(tmp_path / "runs")
    store = RunStore(tmp_path / "runs")
    names = sorted(store.ids())
    for name in names[12:]:
        shutil.rmtree(store.path / name)
    wanted = ("run.json", "events.jsonl", "report.json")
    damage = dict(
        zip(names, [(name, text) for name in wanted for text in ("{", "\0" * 9, "[" * 100_000)], strict=False)
    )
    for run, (name, content) in damage.items():
        (store.path / run / name).write_text(f"{content}\n")
    done = CliRunner().invoke(command, [], obj=store)
    assert done.exit_code == 0, done.output
    assert f"Damaged and left out: {', '.join(damage)}." in done.output and names[11] in done.output
    for run in damage:
        refused = CliRunner().invoke(command, [run], obj=store)
        assert isinstance(refused.exception, MlereduxError) and run in str(refused.exception), refused.exception


IRREGULAR: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a link": lambda path: path.symlink_to("/dev/zero"),
    "a folder": Path.mkdir,
    "a hole of a terabyte": lambda path: (path.touch(), os.truncate(path, 1 << 40)),
}


@pytest.mark.parametrize("kind", IRREGULAR)
@pytest.mark.attack
def test_irregular_files_neither_stop_reading_nor_hide_other_runs(failing: Path, kind: str) -> None:
    names = ("run.json", "events.jsonl", "report.json", "rollout.json", "logs/agent.log")
    for number, name in enumerate(names):
        path = next(failing.glob(f"*task{number}-bad-*0")) / name
        path.unlink(missing_ok=True)
        IRREGULAR[kind](path)
    results = load(failing, rollouts=True)
    left = {left.run.split("-")[2] for left in results.left}
    assert {"task0", "task2"} <= left <= {"task0", "task1", "task2"}  # an empty log of events is that of a queued run
    assert len(results.rows) == 8 * 4 - len(left)


def test_a_log_of_holes_has_the_failure_before_them(failing: Path) -> None:
    path = next(failing.glob("*task0-bad-*0"))
    os.truncate(path / "logs" / "agent.log", 1 << 40)
    assert failures_of(path)[0].record()["category"] == "package"


def test_pages_get_the_same_failures(failing: Path) -> None:
    path = next(failing.glob("*task0-bad-*0"))
    found = failures_of(path)[0].record()
    expected = ("package", CATEGORIES["package"].title, "ModuleNotFoundError: No module named 'torch'")
    assert (found["category"], found["title"], found["line"]) == expected
    assert failures_of(path / "absent") == ()


def test_hostile_traces_do_not_hide_failures(failing: Path) -> None:
    for number, content in enumerate(('{"steps": 1}', '{"steps": [1, {"source": "agent", "extra": []}]}', "[[", "{}")):
        path = next(failing.glob(f"*task{number}-bad-*0"))
        (path / "rollout.json").write_text(content)
    huge = next(failing.glob("*task5-bad-*0")) / "rollout.json"
    huge.write_text('{"steps": [{"source": "agent", "extra": {"validation_metric": 1%s}}]}' % ("0" * 400))
    found = load(failing, rollouts=True)
    assert not found.notes
    assert {row.failure for row in found.arms["bad"]} == {"package"}


def test_a_judge_is_asked_through_the_gateway_and_its_agreement_measured(
    found: dict[str, list[Finding]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpack_runs(tmp_path)
    for path in tmp_path.iterdir():
        if path.name.rpartition("-")[0] not in ("clean", "package", "memory"):
            shutil.rmtree(path)
    says = [("OutOfMemoryError", "resources"), ("ModuleNotFoundError", "no-submission"), ("accuracy", "none")]
    rules = [{"when": {"last": pattern}, "reply": {"text": json.dumps({"category": name})}} for pattern, name in says]
    store = RunStore(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    with ScriptedLlm({"rules": rules}, key="secret") as llm:
        for name, value in llm.environment("secret").items():
            monkeypatch.setenv(name, value)
        done = CliRunner().invoke(command, ["--judge", "scripted", "--json"], obj=store, catch_exceptions=False)
        told = json.loads(done.stdout)
        assert Counter((one["primary"], one["judged"]) for one in told) == {
            (None, "none"): 3, ("package", "no-submission"): 3, ("resources", "resources"): 3,
        }  # fmt: skip
        # Observed 2/3; by chance 1/3 (none) · 1/3 + 1/3 (resources) · 1/3 = 2/9: (2/3 − 2/9)/(1 − 2/9) = 4/7.
        assert told[0]["kappa"] == pytest.approx(4 / 7)
        done = CliRunner().invoke(command, ["--judge", "scripted"], obj=store, catch_exceptions=False)
        assert "Agreement of scripted with the rules over 9 runs: kappa 0.57." in done.stdout
        assert (told[0]["judge_use"]["calls"], told[0]["judge_use"]["exhausted"]) == (9, None)
        spent = [run.report.ledger for run in map(store.get, store.ids()) if run.report]
        assert not any(ledger.llm for ledger in spent if ledger)  # a judge's calls are no run's

        # A price of $1 for each token: the budget is enough for no call.
        config = tmp_path / "gateway.toml"
        upstream = f'protocol = "openai"\nbase_url = "{llm.url}/v1"\nkey_env = "OPENAI_API_KEY"\n'
        config.write_text(f"[upstreams.scripted]\n{upstream}[prices.scripted]\ninput = 1e6\noutput = 1e6\n")
        monkeypatch.setenv("MLEREDUX_GATEWAY_CONFIG", str(config))
        done = CliRunner().invoke(command, ["--judge", "scripted", "--judge-cost", "0.5"], obj=store)
        assert "Its budget is used up; not judged: 9 runs." in done.stdout, done.output
    monkeypatch.delenv("MLEREDUX_GATEWAY_CONFIG")
    with ScriptedLlm({"rules": [{"reply": {"text": "Well done!"}}]}) as llm:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{llm.url}/v1")
        done = CliRunner().invoke(command, ["--judge", "scripted"], obj=store)
        assert isinstance(done.exception, MlereduxError) and "returned no category" in str(done.exception)
