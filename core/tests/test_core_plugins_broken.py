"""Broken plugins are named with the remedy, and take no other along."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mleredux_support.installed import GOOD, Site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "site")


BROKEN: dict[str, tuple[str, str]] = {
    "raises": ("raise RuntimeError('boom')", r"can't be imported from broken (RuntimeError: boom, __init__.py line 1)"),
    "exits": ("import sys; sys.exit(3)", "can't be imported from broken (SystemExit: 3"),
    "base": ("class Odd(BaseException): pass\nraise Odd('x')", "can't be imported from broken (Odd: x"),
    "missing": ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
    "syntax": ("def (", "SyntaxError"),
    "signature": (
        "from mleredux import hookimpl\n@hookimpl\ndef mleredux_grade(task, prediction): pass",
        "violates the contract",
    ),
    "hook": (
        "from mleredux import hookimpl\n@hookimpl\ndef mleredux_dance(): pass",
        "unknown hooks: mleredux_dance",
    ),
    "newer": (
        "mleredux_contract = 99",
        "was written for contract 99, but this version of mleredux supports contract 2; install a newer",
    ),
    "older": ("mleredux_contract = 0", "install a newer version of broken"),
    "changed hook": (
        "from mleredux import hookimpl\nmleredux_contract = 1\n"
        "@hookimpl\ndef mleredux_run_agent(agent, run, sandbox): pass",
        "was written for contract 1, but this version of mleredux supports contract 2; install a newer version",
    ),
    "wordy": ("mleredux_contract = 'two'", "which is not an integer"),
    "declaration": (
        "from mleredux import hookimpl\n@hookimpl\ndef mleredux_register_tasks(): return ['a task']",
        "a str was registered instead of a mleredux.plugin.task.Task (or a Ref to one)); fix mleredux_register_tasks",
    ),
    "exits later": (
        "import sys\nfrom mleredux import hookimpl\n@hookimpl\ndef mleredux_register_tasks(): sys.exit(1)",
        "has an invalid declaration of tasks (SystemExit: 1)",
    ),
    "invalid": (
        "from mleredux import hookimpl, Agent\n@hookimpl\ndef mleredux_register_agents():\n"
        "    return [Agent(id='no spaces', title='', command=())]",
        "has an invalid declaration of agents (ValidationError",
    ),
    "one duplicate": (
        GOOD.format(name="broken") + "TASK = TASK.model_copy(update={'id': 'alpha-task'})",
        "'alpha-task' is registered by plugin 'alpha' (alpha) and by 'broken' (broken); rename one, or block one",
    ),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_plugin_is_named_with_the_remedy_and_takes_nobody_along(site: Site, how: str) -> None:
    code, sentence = BROKEN[how]
    site.good("alpha")
    site.install("broken", code)
    site.good("zeta")
    found = site.listed()
    assert {"alpha-task", "zeta-task"} <= set(found["tasks"])
    assert {"alpha-agent", "zeta-agent"} <= set(found["agents"])
    assert any(sentence in problem for problem in found["problems"]), found["problems"]
    assert all("'broken'" in problem for problem in found["problems"])


def test_one_wrong_task_does_not_take_the_plugins_others_along(site: Site) -> None:
    site.install("mixed", GOOD.format(name="mixed").replace("return [TASK]", "return ['wrong', TASK, 7]"))
    found = site.listed()
    assert found["tasks"] == ["mixed-task"] and len(found["problems"]) == 2


def test_a_plugin_of_an_older_contract_is_loaded_where_no_hook_of_it_changed(site: Site) -> None:
    assert "mleredux_contract = 2" in GOOD
    old = GOOD.replace("mleredux_contract = 2", "mleredux_contract = 1")
    site.install("alpha", old.format(name="alpha"))
    changed = "@hookimpl\ndef mleredux_run_agent(agent): pass\n"
    site.install("omega", old.format(name="omega") + changed)
    for _ in range(2):
        found = site.listed()
        assert found["tasks"] == ["alpha-task"]
        (problem,) = found["problems"]
        assert "'omega'" in problem and "was written for contract 1" in problem


LOUD: dict[str, str] = {
    "at import": "print('noise')\n" + GOOD,
    "in a hook": GOOD.replace("    return [TASK]", "    print('noise')\n    return [TASK]").replace(
        "    return [Ref", "    print('noise')\n    return [Ref"
    ),
    "in a generator": GOOD.replace("    return [Ref(", "    print('noise')\n    yield from [Ref("),
    "after it closed its output": "import sys\nprint('noise')\nsys.stdout = None\n" + GOOD,
}


@pytest.mark.parametrize("how", LOUD)
def test_what_a_plugin_prints_while_it_is_loaded_is_in_no_result(site: Site, how: str) -> None:
    (site.path / "loud.py").write_text(LOUD[how].format(name="loud"))
    arguments = ["mleredux", "-p", str(site.path / "loud.py"), "list", "agents", "--json"]
    ended = site.python(
        f"import runpy, sys\nsys.argv = {arguments}\nrunpy.run_module('mleredux', run_name='__main__')\n"
    )
    assert "loud-agent" in [row["id"] for row in json.loads(ended.stdout)], ended.stderr
