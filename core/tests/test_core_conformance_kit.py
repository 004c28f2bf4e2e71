"""The conformance kit passes what conforms, and names everything that is wrong with what does not."""

from __future__ import annotations

import csv
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import mleredux_testing as testing
import pytest
from mleredux._core.plugins import Catalogue
from mleredux._core.plugins.capabilities import Capabilities
from mleredux._core.sandboxes.process import ProcessSandbox
from mleredux.models import Agent, Grader, GradingInput, Limits, Metric, Submission, Thresholds
from mleredux_testing import TOY_PLUGIN, NotConforming, toy_agent, toy_task
from mleredux_testing.toys import prepare, score


@pytest.fixture
def catalogue() -> Catalogue:
    return Catalogue(load=[TOY_PLUGIN])


def wrong(error: pytest.ExceptionInfo[NotConforming]) -> dict[str, str]:
    return {finding.name: finding.message for finding in error.value.findings.wrong}


# What conforms


def test_the_toy_task_conforms_in_every_respect(catalogue: Catalogue, tmp_path: Path) -> None:
    findings = testing.check_task("toy", tmp_path, catalogue=catalogue)
    looked_at = {finding.name for finding in findings.all}
    assert {"same bytes each time", "answers in public files", "row order", "graded in a child process"} <= looked_at
    assert sum(name.startswith("refuses ") for name in looked_at) >= 18


def test_the_toy_agent_conforms(catalogue: Catalogue, tmp_path: Path) -> None:
    findings = testing.check_agent("toy-nearest", tmp_path, catalogue=catalogue)
    assert {"run", "submission", "submission versions"} <= {finding.name for finding in findings.all}


def test_the_process_sandbox_conforms(tmp_path: Path) -> None:
    findings = testing.check_sandbox("process", tmp_path)
    assert len(findings.all) >= 30


def test_core_itself_conforms_as_a_plugin() -> None:
    assert len(testing.check_plugin("core").all) >= 5


# What does not


def test_all_faults_of_a_task_are_named_at_once(tmp_path: Path, catalogue: Catalogue) -> None:
    obfuscated = tmp_path / "obfuscated.md"
    obfuscated.write_text("This is the task toy, or Large rectangles.")

    def forgetful(raw: Path, public: Path, private: Path) -> None:
        prepare(raw, public, private)
        (public / "notes.txt").write_text(str(random.random()))
        shutil.copy(private / "answers.csv", public / "kept.csv")

    task = toy_task.model_copy(
        update={
            "prepare": forgetful,
            "description_obfuscated": obfuscated,
            "direction": "minimize",
            "thresholds": Thresholds(gold=0.9, silver=0.5, bronze=0.7, median=0.8),
        }
    )
    others = [plugin.name for plugin in Catalogue().plugins if plugin.source != "built in"]
    with pytest.raises(NotConforming) as error:
        testing.check_task(task, tmp_path / "work", catalogue=Catalogue(block=others))
    assert {
        "obfuscated description",
        "direction",
        "thresholds",
        "same bytes each time",
        "private files",
        "answers in public files",
    } <= set(wrong(error))
    assert all(name in str(error.value) for name in wrong(error))


def test_answers_under_another_name_in_another_order_are_found(tmp_path: Path) -> None:
    def leaky(raw: Path, public: Path, private: Path) -> None:
        prepare(raw, public, private)
        with (private / "answers.csv").open() as file:
            rows = list(csv.reader(file))[1:]
        with (public / "more.csv").open("w") as file:
            file.write("noise,id,hint\n" + "".join(f"{n},{row[0]},{row[1]}.0\n" for n, row in enumerate(rows[::-1])))

    task = toy_task.model_copy(update={"id": "leaky", "prepare": leaky})
    with pytest.raises(NotConforming) as error:
        testing.check_task(task, tmp_path)
    assert wrong(error)["answers in public files"].startswith("column 'hint' of more.csv is the answers' 'large'")


def lenient(given: GradingInput) -> float:
    """Takes whatever comes."""
    try:
        return score(given)
    except Exception:
        return 0.5


def blind(given: GradingInput) -> float:
    """Pairs rows by position, and trips over bad cells."""
    with given.submission.open() as mine, (given.private / given.task.answers).open() as truth:
        pairs = list(zip(csv.DictReader(mine), csv.DictReader(truth), strict=True))
    return sum(int(one["large"]) == int(other["large"]) for one, other in pairs) / len(pairs)


def own(function: Any) -> Grader:
    return Grader(id="own", title="Own", direction="maximize", perfect=1.0, score=function)


LARGE = (["id", "large"], [[str(row), str(row % 2)] for row in range(20)])


def test_a_grader_that_scores_everything_is_found_out(tmp_path: Path) -> None:
    with pytest.raises(NotConforming) as error:
        testing.check_grader(own(lenient), tmp_path, answers=LARGE)
    assert {"refuses empty file", "refuses UTF-16 text", "refuses NaN in column large", "refuses an id twice"} <= set(
        wrong(error)
    )


def test_a_grader_that_trips_or_ignores_ids_is_found_out(tmp_path: Path) -> None:
    with pytest.raises(NotConforming) as error:
        testing.check_grader(own(blind), tmp_path, answers=LARGE)
    found = wrong(error)
    assert "row order" in found
    assert "UnicodeDecodeError" in found["refuses UTF-16 text"]
    assert "ValueError" in found["refuses text in column large"]


def test_a_task_whose_grader_checks_nothing_is_kept_by_its_schema(tmp_path: Path) -> None:
    task = toy_task.model_copy(update={"id": "own", "metric": Metric(grader=own(lenient))})
    testing.check_task(task, tmp_path)


def test_a_task_whose_grader_is_unknown_gets_one_sentence(tmp_path: Path) -> None:
    task = toy_task.model_copy(update={"metric": Metric(grader="acuracy"), "title": ""})
    with pytest.raises(NotConforming) as error:
        testing.check_task(task, tmp_path)
    [sentence] = wrong(error).values()
    assert "There is no grader 'acuracy'" in sentence and not any(tmp_path.iterdir())


def test_a_grader_alone_is_checked_on_answers_it_takes(tmp_path: Path) -> None:
    with pytest.raises(NotConforming) as error:
        testing.check_grader(
            Grader(id="constant", title="Constant", direction="maximize", perfect=1.0, score=lambda given: 0.25),
            tmp_path,
        )
    assert "0.25" in wrong(error)["perfect score"]
    assert "refuses empty file" in wrong(error)


def test_an_agent_that_crashes_is_shown_with_the_end_of_its_log(tmp_path: Path) -> None:
    crashing = Agent(
        id="crashing",
        title="Crashing",
        command=("python", "-c", "raise SystemExit('nothing works')"),
        secrets=("KEY",),
        env={"KEY": "value", "MLEREDUX_SEED": "1"},
        limits=Limits(memory_mb=256),
    )
    with pytest.raises(NotConforming) as error:
        testing.check_agent(crashing, tmp_path)
    found = wrong(error)
    assert {"secrets", "variables", "run"} == set(found)
    assert "nothing works" in found["run"]


def test_an_agent_that_leaves_nothing_or_a_bad_rollout_is_found_out(tmp_path: Path) -> None:
    program = "import pathlib; pathlib.Path('rollout/trajectory.json').write_text('{}')"
    lazy = toy_agent.model_copy(update={"id": "lazy", "command": ("python", "-c", program)})
    with pytest.raises(NotConforming) as error:
        testing.check_agent(lazy, tmp_path)
    assert {"submission", "submission versions", "rollout"} <= set(wrong(error))


class Leaky(ProcessSandbox):
    """Claims to be a boundary, lets the environment through, finds nothing again and sweeps nothing."""

    capabilities = Capabilities(isolated=True)

    def attach(self, launch: Any) -> None:
        return None

    def sweep(self, owner: str, alive: Any) -> list[str]:
        return []


@pytest.mark.slow
def test_a_sandbox_that_promises_too_much_is_found_out(tmp_path: Path) -> None:
    with pytest.raises(NotConforming) as error:
        testing.check_sandbox(Leaky(), tmp_path)
    assert {"answers", "network", "attach", "sweep", "sweep ends all"} <= set(wrong(error))


PLUGINS = {
    "heavy": ("import pandas\nmleredux_contract = 2\n", {"top module"}),
    "foreign": ("mleredux_contract = 99\n", {"loads"}),
    "absent": (None, {"found"}),
}


@pytest.mark.parametrize("name", PLUGINS)
def test_plugins_that_do_not_conform_are_told_why(name: str, tmp_path: Path) -> None:
    """In an environment of their own: a folder with the metadata of a distribution."""
    source, expected = PLUGINS[name]
    if source is not None:
        (tmp_path / f"plugin_{name}.py").write_text(source)
        info = tmp_path / f"{name}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        (info / "entry_points.txt").write_text(f"[mleredux]\n{name} = plugin_{name}\n")
    program = (
        "import sys\nimport mleredux_testing as testing\n"
        "try:\n    testing.check_plugin(sys.argv[1])\n"
        "except testing.NotConforming as error:\n    print(*(f.name for f in error.findings.wrong), sep='\\n')\n"
    )
    asked = subprocess.run(
        [sys.executable, "-c", program, name],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin"},
    )
    assert set(asked.stdout.split("\n")) - {""} == expected, asked.stderr


def test_ids_that_an_agent_chooses_are_not_held_against_a_task(tmp_path: Path) -> None:
    """Where ids are free, missing and further rows are no fault."""

    def by_overlap(given: GradingInput) -> float:
        return score(given)

    free = toy_task.model_copy(
        update={
            "id": "own",
            "metric": Metric(grader=own(by_overlap)),
            "submission": Submission(id_columns=("id",), target_columns=("large",), ids_fixed=False),
        }
    )
    findings = testing.check_task(free, tmp_path)
    assert "refuses a row too few" not in {finding.name for finding in findings.all}


def test_a_plugins_checks_are_parameters_for_pytest() -> None:
    params = testing.checks("starter", only=["digits", "wine"], skip={"wine": "shown as skipped"})
    assert [param.id for param in params] == ["plugin starter", "task digits", "task wine"]
    assert [bool(param.marks) for param in params] == [False, False, True]


BROKEN_PRODUCER = """
from mleredux.plugin import hookimpl

mleredux_contract = 2


@hookimpl
def HOOK(run):
    raise KeyError("words")
"""


@pytest.mark.filterwarnings("ignore:Plugin .* is replaced by:DeprecationWarning")
@pytest.mark.parametrize("hook", ["mleredux_produce_artifacts", "mleredux_produce_reports"])
@pytest.mark.parametrize(
    "body", ['raise KeyError("words")', 'return [Artifact(path="../x")]', "return 7", "run.nothing"]
)
def test_a_producer_that_fails_does_not_conform(
    hook: str, body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = BROKEN_PRODUCER.replace("HOOK", hook).replace('raise KeyError("words")', body)
    name = f"broken_{abs(hash((hook, body)))}"
    (tmp_path / f"{name}.py").write_text("from mleredux.plugin.artifact import Artifact\n" + text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("MLEREDUX_PLUGINS", name)
    with pytest.raises(testing.NotConforming, match="Producing artifacts failed"):
        testing.check_plugin(name)


PANEL = """
from mleredux.plugin import hookimpl
from mleredux.plugin.page import Panel

mleredux_contract = 2


@hookimpl
def mleredux_register_pages():
    return [Panel(title="Words", template="words.html.j2", function="NAME:count")]


def count(visit, run):
    return {}
"""


@pytest.mark.filterwarnings("ignore:Plugin .* is replaced by:DeprecationWarning")
@pytest.mark.parametrize(
    ("template", "change", "wrong"),
    [
        ("<p>{{ words }}</p>", (), None),
        (None, (), r"words\.html\.j2 does not exist"),
        ("{% if words %}", (), "template of Words: TemplateSyntaxError"),
        ("<p></p>", (":count", ":missing"), "function of Words: AttributeError"),
        ("<p></p>", ("return [", "return [][0], ["), "pages: IndexError"),
    ],
)
def test_a_panel_conforms_if_its_function_and_its_template_exist(
    template: str | None, change: tuple[str, ...], wrong: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"panel_{abs(hash((template, change)))}"
    (tmp_path / name / "templates").mkdir(parents=True)
    text = PANEL.replace("NAME", name)
    (tmp_path / name / "__init__.py").write_text(text.replace(*change) if change else text)
    if template is not None:
        (tmp_path / name / "templates" / "words.html.j2").write_text(template)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("MLEREDUX_PLUGINS", name)
    if wrong is None:
        testing.check_plugin(name)
        return
    with pytest.raises(testing.NotConforming, match=wrong):
        testing.check_plugin(name)
