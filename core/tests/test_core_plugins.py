"""Plugins as they are found on a real import path: lazily, each apart from all others, blamed by name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mleredux._core.plugins import Catalogue

GOOD = """
from pathlib import Path
from mleredux import Agent, Competition, Grader, Metric, Ref, hookimpl
mleredux_contract = 2
GRADER = Grader(id="{name}-grader", title="G", direction="maximize", score=lambda given: 1.0)
TASK = Competition(id="{name}-task", title="T", description=Path("d.md"), metric=Metric(grader=GRADER),
                   direction="maximize", variants={{"odd": lambda task: task, "bad": lambda task: 1 / 0}})
@hookimpl
def mleredux_register_tasks():
    return [TASK]
@hookimpl
def mleredux_register_agents():
    return [Ref("{name}-agent", "{name}:AGENT")]
AGENT = Agent(id="{name}-agent", title="A", command=("true",))
"""
LIST = """
import json, sys
from mleredux._core.plugins import Catalogue
catalogue = Catalogue()
tasks, agents = list(catalogue.entries("tasks")), list(catalogue.entries("agents"))
print(json.dumps({"tasks": tasks, "agents": agents, "problems": catalogue.problems(), "modules": sorted(sys.modules),
                  "states": {plugin.name: plugin.state for plugin in catalogue.plugins}}))
"""


class Site:
    """A folder of installed distributions, each with one plugin."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()

    def install(self, name: str, code: str, index: Any = None, *, entry: str | None = None) -> None:
        package = self.path / name
        package.mkdir()
        (package / "__init__.py").write_text(code)
        if index is not None:
            (package / "mleredux.json").write_text(index if isinstance(index, str) else json.dumps(index))
        info = self.path / f"{name}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
        (info / "entry_points.txt").write_text(f"[mleredux]\n{entry or name} = {name}\n")

    def good(self, name: str, **more: Any) -> None:
        self.install(name, GOOD.format(name=name), **more)

    def python(self, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
        # Without the distributions of this environment: only ours and click, pluggy, pydantic of the same folder.
        ours = "import sys; from importlib import metadata; real = metadata.entry_points\n"
        ours += "metadata.entry_points = lambda **q: [p for p in real(**q) if p.dist and p.dist.version == '1.2']\n"
        return subprocess.run(
            [sys.executable, "-c", ours + code],
            env={**os.environ, "PYTHONPATH": str(self.path), "MLEREDUX_BLOCK_PLUGINS": "", **environment},
            capture_output=True,
            text=True,
            timeout=60,
        )

    def listed(self, **environment: str) -> dict[str, Any]:
        told = self.python(LIST, **environment)
        assert told.returncode == 0, told.stderr
        found: dict[str, Any] = json.loads(told.stdout.splitlines()[-1])
        return found


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "site")


def entry(name: str, **summary: Any) -> dict[str, Any]:
    return {"id": name, "target": f"{name.partition('-')[0]}:TASK", "summary": summary}


def index(name: str, **registered: Any) -> dict[str, Any]:
    return {"plugins": {name: {"contract": 2, "hooks": [], **registered}}}


def test_of_what_changes_from_user_to_user_a_plugin_is_asked_each_time_in_spite_of_its_index(site: Site) -> None:
    site.good("alpha", index=index("alpha", dynamic=["agents"], tasks=[entry("old-task")], agents=[entry("old-agent")]))
    found = site.listed()
    assert "alpha-agent" in found["agents"] and "old-agent" not in found["agents"]
    assert found["tasks"] == ["old-task"], "of all else the index is believed"


def test_a_plugin_with_an_index_is_listed_without_being_imported(site: Site) -> None:
    site.good("alpha", index=index("alpha", tasks=[entry("alpha-task")]))
    site.good("beta")
    found = site.listed()
    assert found["tasks"] == ["alpha-task", "beta-task"]
    assert "alpha" not in found["modules"] and "beta" in found["modules"]
    assert found["states"] == {"core": "found", "alpha": "found", "beta": "loaded"}


def test_listing_two_hundred_tasks_imports_nothing(site: Site) -> None:
    for number in range(20):
        name = f"bundle{number}"
        tasks = [entry(f"{name}-task{task}", title="T") for task in range(10)]
        site.install(name, "raise AssertionError('imported')", index(name, tasks=tasks))
    found = site.listed()
    assert len(found["tasks"]) == 200 and found["problems"] == []
    heavy = {"pluggy", "pydantic", "rich", "pandas", "sklearn", "docker", "numpy", "sqlite3", "bundle3"}
    assert not heavy & set(found["modules"])


BROKEN: dict[str, tuple[str, str]] = {
    "raises": ("raise RuntimeError('boom')", r"can't be imported from broken (RuntimeError: boom, __init__.py line 1)"),
    "exits": ("import sys; sys.exit(3)", "can't be imported from broken (SystemExit: 3"),
    "base": ("class Odd(BaseException): pass\nraise Odd('x')", "can't be imported from broken (Odd: x"),
    "missing": ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
    "syntax": ("def (", "SyntaxError"),
    "signature": (
        "from mleredux import hookimpl\n@hookimpl\ndef mleredux_grade(task, prediction): pass",
        "breaks the contract",
    ),
    "hook": (
        "from mleredux import hookimpl\n@hookimpl\ndef mleredux_dance(): pass",
        "hooks that do not exist: mleredux_dance",
    ),
    "newer": ("mleredux_contract = 99", "was made for contract 99, this mleredux speaks contract 2; install a newer"),
    "older": ("mleredux_contract = 0", "install a newer version of broken"),
    "changed hook": (
        "from mleredux import hookimpl\nmleredux_contract = 1\n"
        "@hookimpl\ndef mleredux_run_agent(agent, run, sandbox): pass",
        "was made for contract 1, this mleredux speaks contract 2; install a newer version of broken",
    ),
    "wordy": ("mleredux_contract = 'two'", "which is no number"),
    "declaration": (
        "from mleredux import hookimpl\n@hookimpl\ndef mleredux_register_tasks(): return ['a task']",
        "a str was given where a mleredux._core.models.Task (or a Ref to one) belongs); mend mleredux_register_tasks",
    ),
    "exits later": (
        "import sys\nfrom mleredux import hookimpl\n@hookimpl\ndef mleredux_register_tasks(): sys.exit(1)",
        "declares tasks wrongly (SystemExit: 1)",
    ),
    "invalid": (
        "from mleredux import hookimpl, Agent\n@hookimpl\ndef mleredux_register_agents():\n"
        "    return [Agent(id='no spaces', title='', command=())]",
        "declares agents wrongly (ValidationError",
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


INDICES: dict[str, tuple[Any, str]] = {
    "no json": ("{", "is damaged (JSONDecodeError"),
    "no plugins": ("{}", "is damaged (KeyError"),
    "a list": ("[]", "is damaged (TypeError"),
    "no hooks": ({"plugins": {"alpha": {"contract": 2}}}, "is damaged (KeyError: 'hooks')"),
    "odd entries": (index("alpha", tasks=[{"name": "x"}]), "is damaged (TypeError"),
    "odd ids": (index("alpha", tasks=[{"id": 7}]), "is damaged (TypeError"),
    "odd summaries": (index("alpha", tasks=[{"id": "x", "summary": None}]), "is damaged (TypeError"),
}


@pytest.mark.parametrize("how", INDICES)
def test_a_damaged_index_is_named_and_done_without(site: Site, how: str) -> None:
    content, sentence = INDICES[how]
    site.good("alpha", index=content)
    found = site.listed()
    assert found["tasks"] == ["alpha-task"]
    (problem,) = found["problems"]
    assert sentence in problem and "mleredux plugins index alpha" in problem


def test_an_index_of_another_contract_is_not_believed(site: Site) -> None:
    site.good("alpha", index={"plugins": {"alpha": {"contract": 3, "hooks": [], "tasks": [entry("alpha-task")]}}})
    found = site.listed()
    assert found["tasks"] == [] and "was made for contract 3" in found["problems"][0]


def test_a_plugin_of_an_older_contract_is_loaded_where_no_hook_of_it_changed(site: Site) -> None:
    assert "mleredux_contract = 2" in GOOD
    site.install("alpha", GOOD.format(name="alpha").replace("mleredux_contract = 2", "mleredux_contract = 1"))
    old = {"contract": 1, "hooks": [], "tasks": [entry("zeta-task")]}
    site.good("zeta", index={"plugins": {"zeta": old}})
    changed = {"contract": 1, "hooks": ["mleredux_run_agent"], "tasks": [entry("omega-task")]}
    site.good("omega", index={"plugins": {"omega": changed}})
    found = site.listed()
    assert found["tasks"] == ["alpha-task", "zeta-task"]
    (problem,) = found["problems"]
    assert "'omega'" in problem and "was made for contract 1" in problem


GET = """
from mleredux.errors import MlereduxError
from mleredux._core.plugins import Catalogue
catalogue = Catalogue()
for name in sys.argv[1:] or {names!r}:
    try:
        print("got", catalogue.task(name).id)
    except MlereduxError as error:
        print(type(error).__name__, error)
"""


def got(site: Site, *names: str) -> list[str]:
    told = site.python(GET.format(names=list(names)))
    assert told.returncode == 0, told.stderr
    return told.stdout.splitlines()


def test_a_stale_index_is_found_out_when_it_is_used(site: Site) -> None:
    stale = [entry("alpha-task"), {**entry("alpha-gone"), "target": "alpha:GONE"}, {"id": "alpha-never"}]
    site.good("alpha", index=index("alpha", tasks=[*stale, {**entry("alpha-other")}]))
    first, gone, never, other = got(site, "alpha-task", "alpha-gone", "alpha-never", "alpha-other")
    assert first == "got alpha-task"
    assert gone.startswith("PluginError The task 'alpha-gone' of plugin 'alpha' can't be loaded from alpha:GONE")
    assert "lists task 'alpha-never' but does not register it. Its index is out of date." in never
    assert "calls itself 'alpha-task', not 'alpha-other'" in other


def test_duplicate_ids_can_not_be_used_by_mistake(site: Site) -> None:
    site.good("alpha", index=index("alpha", tasks=[entry("alpha-task")]))
    site.good("beta", index=index("beta", tasks=[{**entry("alpha-task"), "target": "beta:TASK"}]))
    (told,) = got(site, "alpha-task")
    assert told.startswith("PluginError The task id 'alpha-task' is registered by plugin 'alpha'")


def test_variants_are_made_when_asked_for_and_mistakes_are_named(site: Site) -> None:
    site.good("alpha")
    odd, bad, none, near = got(site, "alpha-task+odd", "alpha-task+bad", "alpha-task+none", "alpha-tsk")
    assert "calls itself 'alpha-task'" in odd
    assert "Variant 'bad' of task alpha-task can't be made (ZeroDivisionError" in bad
    assert none == "NotFound Task alpha-task has no variant 'none'. It has: alpha-task+bad, alpha-task+odd."
    assert "Did you mean alpha-task?" in near


def test_two_plugins_of_one_name_are_told_apart(site: Site) -> None:
    site.good("alpha")
    site.install("second", GOOD.format(name="second"), entry="alpha")
    found = site.listed()
    assert found["tasks"] == ["alpha-task"]
    assert found["problems"] == ["Plugin name 'alpha' of second is taken by alpha; uninstall one of them."]


def test_plugins_are_blocked_by_name(site: Site) -> None:
    site.install("alpha", "raise AssertionError('imported')")
    site.good("beta")
    assert site.listed(MLEREDUX_BLOCK_PLUGINS="alpha, nobody")["states"]["alpha"] == "blocked"
    assert site.listed(MLEREDUX_BLOCK_PLUGINS="alpha")["tasks"] == ["beta-task"]


def _main(site: Site, folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    code = f"import os; os.chdir({str(folder)!r}); sys.argv[1:] = {list(arguments)!r}\n"
    return site.python(code + "from mleredux._core.cli import main; main()", **environment)


def test_the_command_line_blocks_loads_and_traces(site: Site, tmp_path: Path) -> None:
    site.good("alpha")
    (tmp_path / "mleredux_plugins.py").write_text(GOOD.format(name="mine"))
    listed: Callable[..., list[str]] = lambda *options, **environment: [  # noqa: E731
        row["id"] for row in json.loads(_main(site, tmp_path, *options, "list", "--json", **environment).stdout)
    ]
    assert listed() == ["alpha-task"], "a plugin file is loaded only when asked for"
    assert listed("-p", "mleredux_plugins.py") == ["alpha-task", "mine-task"]
    assert listed("--block", "alpha", MLEREDUX_PLUGINS=".") == ["mine-task"]
    missing = _main(site, tmp_path, "-p", "nowhere.py", "list")
    assert missing.returncode == 0 and "does not exist; name a .py file" in missing.stderr


def test_a_plugin_file_does_not_take_the_place_of_another_module(site: Site, tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "json.py").write_text("loads = None")
    told = _main(site, tmp_path, "-p", "below/json.py", "list", "--json")
    assert json.loads(told.stdout) == [], told.stderr


def test_hook_calls_can_be_traced(site: Site) -> None:
    site.good("alpha")
    code = """
from mleredux._core.plugins import Catalogue
catalogue = Catalogue()
task = catalogue.task("alpha-task")
catalogue.hook("mleredux_grade").get_hookimpls()
catalogue.hook("mleredux_produce_artifacts")(run=None)
"""
    assert "mleredux_produce_artifacts" in site.python(code, MLEREDUX_TRACE="1").stderr
    assert "mleredux_produce_artifacts" not in site.python(code, MLEREDUX_TRACE="0").stderr


def test_the_index_of_what_is_built_in_is_current() -> None:
    from mleredux._core.plugins.index import make_index

    path, content = make_index("core")
    assert path.read_text(encoding="utf-8") == content, "write it again: mleredux plugins index core"


def test_plugin_files_of_one_name_in_two_folders_do_not_harm_each_other(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mleredux_plugins.py").write_text(
            "from mleredux import Agent, hookimpl\n\n\n@hookimpl\ndef mleredux_register_agents():\n"
            f"    return [Agent(id='{name}', title='{name}', command=('true',))]\n"
        )
        catalogue = Catalogue(load=[str(tmp_path / name)])
        assert catalogue.agent(name).title == name


def test_producers_that_ask_to_be_last_see_what_the_others_made(toy: Any) -> None:
    from mleredux import Artifact, hookimpl

    order: list[str] = []

    def producer(name: str, **options: bool) -> Any:
        class Producer:
            @hookimpl(**options)
            def mleredux_produce_artifacts(self, run: Any) -> list[Artifact]:
                order.append(name)
                return []

        return Producer()

    for name, options in (("last", {"trylast": True}), ("plain", {}), ("first", {"tryfirst": True})):
        toy.catalogue.manager.register(producer(name, **options), name)
    toy.run("copy")
    assert order == ["first", "plain", "last"]
