"""Plans: files with errors that name the field, and the matrix they make."""

from __future__ import annotations

from pathlib import Path

import pytest
from mleredux.errors import MlereduxError
from mleredux.plugin.command import current
from mleredux.plugin.experiment import Plan
from mleredux_experiments.execution.estimate import checked
from mleredux_experiments.execution.experiment import start
from mleredux_experiments.execution.plan import check_plan, planned_cells, read_plan
from mleredux_experiments.results.table import Results

PLAN = """
[experiment]
name = "first"
primary = "any_medal"
margin = 3.0
tasks = ["digits", "set:starter"]
seeds = [0, 1]

[limits]
time_limit = "5m"

[arms.v1]
agent = "dummy"

[arms.v2]
agent = "dummy"
limits = {memory_mb = "2g"}
"""


def written(tmp_path: Path, text: str = PLAN) -> Path:
    path = tmp_path / "plan.toml"
    path.write_text(text)
    return path


def test_every_arm_meets_each_task_and_seed_once_and_arms_alternate(tmp_path: Path) -> None:
    plan = read_plan(written(tmp_path), current())
    cells = plan.request.model_copy(update={"tasks": ("digits", "wine", "diabetes")}).cells()
    assert len(cells) == len(set(cells)) == 12
    pairs = [cells[start : start + 2] for start in range(0, 12, 2)]
    assert all({cell.arm for cell in pair} == {"v1", "v2"} and len({cell[1:] for cell in pair}) == 1 for pair in pairs)
    assert {pair[0].arm for pair in pairs} == {"v1", "v2"}
    assert Plan.model_validate_json(plan.model_dump_json()) == plan


def test_the_primary_measure_may_be_that_after_a_time(tmp_path: Path) -> None:
    check_plan(read_plan(written(tmp_path, PLAN.replace("any_medal", "any_medal@2h")), current()), current())


def test_a_grid_makes_an_arm_for_each_combination(tmp_path: Path) -> None:
    grid = "\n[arms.v1.grid]\nlimits.time_limit = ['1h', '2h']\nobfuscated = [false, true]\n[arms.v2]"
    arms = read_plan(written(tmp_path, PLAN.replace("[arms.v2]", grid)), current()).all_arms()
    assert list(arms)[:2] == ["v1:time_limit=1h,obfuscated=False", "v1:time_limit=1h,obfuscated=True"]
    made = [(arm.limits.time_limit, arm.obfuscated) for name, arm in arms.items() if name != "v2"]
    assert made == [(3600, False), (3600, True), (7200, False), (7200, True)]
    assert arms["v2"].request("wine")["limits"] == {"time_limit": 300, "memory_mb": 2048}


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('agent = "dummy"', 'agnt = "dummy"', "no field arms.v1.agnt. Did you mean arms.v1.agent?"),
        ('"digits"', '"digitz"', "experiment.tasks: There is no task 'digitz'. Did you mean digits or digits-code?"),
        ("set:starter", "set:startr", "experiment.tasks: There is no set 'startr'."),
        ("dummy", "dumy", "arms.v1.agent: There is no agent 'dumy'. Did you mean dummy?"),
        ("memory_mb", "memory", "no field arms.v2.limits.memory. Did you mean arms.v2.limits.memory_mb?"),
        ('"2g"', '"2x"', "arms.v2.limits.memory_mb: '2x' is not a valid size"),
        ("margin = 3.0", 'analysis = "equivalence"', 'analysis = "equivalence" requires a margin above 0'),
        ("margin = 3.0", "margin = -1", "experiment.margin: it must be greater than or equal to 0, not -1."),
        ("any_medal", "any_medl", "experiment.primary: There is no measure 'any_medl'. Did you mean any_medal?"),
        ("[limits]", "[limts]", "no field limts. Did you mean limits?"),
        ("tasks =", "tsks =", "no field experiment.tsks. Did you mean experiment.tasks?"),
        ('agent = "dummy"', 'agent = "dummy"\ncontext = "no.md"', "arms.v1.context: "),
        (
            'agent = "dummy"',
            'agent = "dummy"\noptions = {steps = 3}',
            "arms.v1.options: Agent dummy has no option steps",
        ),
        ("seeds = [0, 1]", "seeds = [0,", "is not valid TOML"),
        (
            "[arms.v1]",
            '[stop]\nrule = "sequential"\n[arms.v1]',
            "stop.rule: with 5 tasks, the sequential rule can never",
        ),
    ],
)
def test_an_error_names_the_field_as_it_was_written(tmp_path: Path, before: str, after: str, message: str) -> None:
    path = written(tmp_path, PLAN.replace(before, after, 1))
    with pytest.raises(MlereduxError) as caught:
        check_plan(read_plan(path, current()), current())
    assert message in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_arms_take_paths_of_scripts_beside_the_plan(
    tmp_path: Path, own_cache: Path, mleredux_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "my plans"
    place.mkdir()
    for name in ("a.py", "b.py", "c.py"):
        (place / name).write_text(f"print('{name}')\n")
    text = PLAN.replace('agent = "dummy"', 'agent = "./a.py"', 1).replace('["digits", "set:starter"]', '["wine"]')
    path = written(place, f'{text}[arms.v3]\nagent = "b.py"\n[arms.v3.grid]\nagent = ["b.py", "./c.py"]\n')
    plan = read_plan(path, current())
    check_plan(plan, current())
    first = start(plan, current(), runs_dir=None, data_dir=None)
    monkeypatch.chdir("/")
    cells = planned_cells(plan, current(), first.record.pinned)
    agents = {run.agent.partition("@copy-")[0] for _, run in cells}
    assert agents == {"dummy", *(f"repo:{place / name}" for name in ("a.py", "b.py", "c.py"))}
    before = {run.agent for _, run in cells}
    (place / "a.py").write_text("print('changed')\n")
    assert {run.agent for _, run in planned_cells(plan, current(), first.record.pinned)} == before
    with pytest.raises(MlereduxError, match=r"experiment\.seeds\.0: it must be greater than or equal to 0, not -1"):
        read_plan(written(place, PLAN.replace("[0, 1]", "[-1]")), current())
    with pytest.raises(MlereduxError, match=r"arms\.v1\.agent: There is no agent './gone\.py'"):
        check_plan(read_plan(written(place, PLAN.replace('"dummy"', '"./gone.py"', 1)), current()), current())


@pytest.mark.parametrize("rule", ["fixed", "sequential"])
@pytest.mark.parametrize("analysis", ["paired", "equivalence"])
def test_the_detectable_amount_answers_the_question_of_the_plan(tmp_path: Path, analysis: str, rule: str) -> None:
    design = f'margin = 30.0\nanalysis = "{analysis}"'
    text = PLAN.replace("any_medal", "percentile").replace("margin = 3.0", design) + f'[stop]\nrule = "{rule}"\n'
    plan = read_plan(written(tmp_path, text), current())
    cells = planned_cells(plan, current())
    planned = [(cell._replace(task=f"{cell.task}-{copy}"), run) for copy in range(3) for cell, run in cells]
    found = checked(plan, planned, Results(())).estimate
    assert found.detectable is not None and found.unit == "points"
    assert found.goal == ("equivalence within " if analysis == "equivalence" else "non-inferiority within ")
    assert found.power is not None and f"within the margin of 30 with a power of {found.power:.0%}" in found.detects
    assert found.detects.startswith(found.goal)
    if analysis == "paired":
        without = plan.experiment.model_copy(update={"margin": 0.0})
        difference = checked(plan.model_copy(update={"experiment": without}), planned, Results(())).estimate
        assert (difference.goal, difference.power) == ("", None) and "margin" not in difference.detects
    few = checked(plan, cells[:4], Results(())).estimate
    least = {"paired": {"fixed": 6, "sequential": 7}, "equivalence": {"fixed": 5, "sequential": 6}}[analysis][rule]
    assert few.detectable is None and few.basis.endswith(f": a decision needs {least} tasks or more")
