"""Broken plugins are named with the remedy, and take no other along."""

from __future__ import annotations

import json
import time
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
    assert "pkgutil" not in str(found["problems"])


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


NOISE = {
    "print": "print('noise')",
    "descriptor": "import os; os.write(1, b'noise')",
    "child process": "import subprocess; subprocess.run(['echo', 'noise'])",
    "first stream": "import sys; sys.__stdout__.write('noise')",
    "library of C": "import ctypes; ctypes.CDLL(None).puts(b'noise'); ctypes.CDLL(None).fflush(None)",
}
LOUD: dict[str, str] = {
    "at import": "{noise}\n" + GOOD,
    "in a hook": GOOD.replace("    return [TASK]", "    {noise}\n    return [TASK]").replace(
        "    return [Ref", "    {noise}\n    return [Ref"
    ),
    "in a generator": GOOD.replace("    return [Ref(", "    {noise}\n    yield from [Ref("),
    "after it closed its output": "import sys\n{noise}\nsys.stdout = None\n" + GOOD,
    "in what a reference names": GOOD.replace('"{name}:AGENT"', '"{name}:LAZY"')
    + "def __getattr__(attribute):\n    if attribute != 'LAZY': raise AttributeError(attribute)\n    {noise}\n"
    "    return AGENT\n",
}


@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("how", LOUD)
def test_what_a_plugin_prints_while_it_is_loaded_is_in_no_result(site: Site, how: str, noise: str) -> None:
    (site.path / "loud.py").write_text(LOUD[how].format(name="loud", noise=NOISE[noise]))
    command = ["agent", "show", "loud-agent"] if how == "in what a reference names" else ["list", "agents"]
    arguments = ["mleredux", "-p", str(site.path / "loud.py"), *command, "--json"]
    ended = site.python(
        f"import runpy, sys\nsys.argv = {arguments}\nrunpy.run_module('mleredux', run_name='__main__')\n"
    )
    assert "noise" not in ended.stdout and "noise" in ended.stderr
    assert "loud-" in str(json.loads(ended.stdout)), ended.stderr


INTERRUPTS = ("KeyboardInterrupt", "SystemExit", "GeneratorExit", "__import__('asyncio').CancelledError")
RAISING: dict[str, str] = {
    "at import": "raise {error}",
    "in an attribute": "def __getattr__(name): raise {error}",
    "in a hook": "from mleredux import hookimpl\n@hookimpl\ndef mleredux_register_tasks(): raise {error}",
    "in a generator": "from mleredux import hookimpl\n@hookimpl\ndef mleredux_register_agents():\n"
    "    raise {error}\n    yield",
    "in a declaration": "from mleredux import hookimpl\nclass Odd:\n    @property\n"
    "    def __class__(self): raise {error}\n"
    "@hookimpl\ndef mleredux_register_agents(): return [Odd()]",
    "in what a reference names": "from mleredux import Ref, hookimpl\n@hookimpl\ndef mleredux_register_agents():\n"
    "    return [Ref('x', 'broken:X')]\n"
    "def __getattr__(name):\n    if name == 'X': raise {error}\n    raise AttributeError(name)",
}


@pytest.mark.parametrize("error", INTERRUPTS)
@pytest.mark.parametrize("place", RAISING)
@pytest.mark.parametrize("indexed", [True, False])
def test_no_exception_of_a_plugin_ends_the_command(site: Site, place: str, error: str, indexed: bool) -> None:
    site.good("alpha")
    site.install("broken", RAISING[place].format(error=error))
    site.good("zeta")
    # Without an index, plugins are imported in the process of the command.
    found = site.listed(**({} if indexed else {"MLEREDUX_DESCRIBING_PLUGINS": "1"}))
    assert {"alpha-task", "zeta-task"} <= set(found["tasks"])
    if indexed or place != "in what a reference names":
        name = error.rpartition(".")[2]
        assert any("'broken'" in problem and name in problem for problem in found["problems"]), found["problems"]


@pytest.mark.parametrize("error", INTERRUPTS)
def test_what_a_hook_raises_is_an_error_that_names_its_plugin(site: Site, error: str) -> None:
    hook = f"from mleredux import hookimpl\n@hookimpl\ndef mleredux_find_task(name, base): raise {error}"
    site.install("broken", hook)
    site.good("zeta")
    ended = site.python(
        "from mleredux._core.plugins import Catalogue\nfrom mleredux.errors import PluginError\n"
        "catalogue = Catalogue()\nprint(catalogue.task('zeta-task').id)\n"
        "try:\n    catalogue.task('zeta-task+other')\nexcept PluginError as error:\n    print(error)"
    )
    assert ended.stdout.splitlines()[0] == "zeta-task", ended.stderr
    assert "Plugin 'broken' failed in mleredux_find_task" in ended.stdout, ended.stderr


@pytest.mark.parametrize(
    "waits", ["time.sleep(60)", "asyncio.run(asyncio.sleep(60))", "subprocess.run(['sleep', '60'])"]
)
def test_ctrl_c_stops_a_command_while_it_imports_a_plugin(site: Site, waits: str) -> None:
    send = "threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()"
    (site.path / "slow.py").write_text(f"import asyncio, os, signal, subprocess, threading, time\n{send}\n{waits}\n")
    arguments = ["mleredux", "-p", str(site.path / "slow.py"), "list", "agents", "--json"]
    began = time.monotonic()
    ended = site.python(
        f"import runpy, sys\nsys.argv = {arguments}\nrunpy.run_module('mleredux', run_name='__main__')\n"
    )
    assert (ended.returncode, ended.stdout) == (130, ""), ended.stderr
    assert "Stopped." in ended.stderr and time.monotonic() - began < 40


@pytest.mark.parametrize("name", ["METADATA", "entry_points.txt"])
@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"\xec[mleredux]\nx = y\n"])
def test_an_installed_package_with_damaged_metadata_is_named(site: Site, name: str, content: bytes) -> None:
    site.good("alpha")
    (site.path / "alpha-1.2.dist-info" / name).write_bytes(content)
    arguments = ["mleredux", "list", "agents"]
    ended = site.python(
        f"import runpy, sys\nsys.argv = {arguments}\nrunpy.run_module('mleredux', run_name='__main__')\n"
    )
    assert ended.returncode == 1 and "alpha-1.2.dist-info can't be read" in ended.stderr, ended.stderr
    assert "Reinstall or remove this package." in ended.stderr
