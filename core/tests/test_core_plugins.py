"""Plugins as they are found on a real import path: lazily, each apart from all others, blamed by name."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from mleredux._core.plugins import Catalogue
from mleredux_support.installed import GOOD, LIST, Site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "site")


def modules(site: Site) -> set[str]:
    return {path.name for path in site.path.iterdir() if (path / "__init__.py").is_file()}


def test_plugins_are_imported_once_and_listed_without_being_imported_from_then_on(site: Site) -> None:
    site.good("alpha")
    site.good("beta")
    for _ in range(2):  # the first one finds out, in a process of its own
        found = site.listed()
        assert found["tasks"] == ["alpha-task", "beta-task"] and found["agents"] == ["alpha-agent", "beta-agent"]
        assert not modules(site) & set(found["modules"])
        assert found["states"] == {"core": "found", "alpha": "found", "beta": "found"}


def test_listing_two_hundred_tasks_imports_nothing(site: Site) -> None:
    for number in range(20):
        many = GOOD.replace("[TASK]", "[TASK.model_copy(update={{'id': f'{name}-task{{n}}'}}) for n in range(10)]")
        site.install(f"bundle{number}", many.format(name=f"bundle{number}"))
    site.listed()
    found = site.listed()
    assert len(found["tasks"]) == 200 and found["problems"] == []
    heavy = {"pluggy", "pydantic", "rich", "pandas", "sklearn", "docker", "numpy", "sqlite3"}
    assert not (heavy | modules(site)) & set(found["modules"])


def test_what_is_listed_follows_the_source_and_the_installation(site: Site) -> None:
    site.good("alpha")
    assert site.listed()["tasks"] == ["alpha-task"]
    site.change("alpha", "alpha-task", "alpha-other-task")
    assert site.listed()["tasks"] == ["alpha-other-task"]
    site.good("beta")
    assert site.listed()["tasks"] == ["alpha-other-task", "beta-task"]
    (site.path / "alpha-1.2.dist-info" / "entry_points.txt").unlink()
    assert site.listed()["tasks"] == ["beta-task"]


def test_what_is_listed_follows_files_beside_the_source(site: Site) -> None:
    code = GOOD.format(name="alpha").replace('id="alpha-task"', "id=(Path(__file__).parent / 'id.txt').read_text()")
    site.install("alpha", code)
    for name in ("one-task", "another-task"):
        (site.path / "alpha" / "id.txt").write_text(name)
        assert site.listed()["tasks"] == [name]


def test_of_an_installed_wheel_only_the_list_of_its_files_is_watched(site: Site) -> None:
    site.good("alpha")
    record = site.path / "alpha-1.2.dist-info" / "RECORD"
    record.write_text("alpha/__init__.py,,\n")
    site.listed()
    site.change("alpha", "alpha-task", "alpha-other-task")
    assert site.listed()["tasks"] == ["alpha-task"], "nobody edits those by hand"
    record.write_text("alpha/__init__.py,sha256=new,1\n")
    assert site.listed()["tasks"] == ["alpha-other-task"]


def test_of_what_changes_from_user_to_user_a_plugin_is_asked_each_time(site: Site, tmp_path: Path) -> None:
    code = GOOD.format(name="alpha").replace('Ref("alpha-agent"', "Ref(Path(NAME).read_text()")
    site.install("alpha", f"NAME = {str(tmp_path / 'name')!r}\nmleredux_dynamic = ('agents',)\n{code}")
    for name in ("one", "another"):
        (tmp_path / "name").write_text(name)
        found = site.listed()
        assert found["agents"] == [name] and found["tasks"] == ["alpha-task"]


def test_jobs_get_no_secret_of_mleredux_and_nothing_that_a_plugin_withholds(site: Site, tmp_path: Path) -> None:
    site.install("alpha", "mleredux_withheld = ('ALPHA_PASSWORD', 'ALPHA_URL')\n" + GOOD.format(name="alpha"))
    (tmp_path / "mine.py").write_text("mleredux_withheld = ['MINE']\n" + GOOD.format(name="mine"))
    code = (
        "import json; from mleredux.plugin.executor import job_environment\n"
        "from mleredux.plugin.command import current; loaded = [one.state for one in current().plugins]\n"
        "print(json.dumps([loaded, job_environment()]))"
    )
    kept = ("ALPHA_PASSWORDS", "OTHER_PASSWORD", "MLEREDUX_GPUS", "MLEREDUX_KEYBOARD", "MY_MLEREDUX_KEY")
    gone = ("ALPHA_PASSWORD", "ALPHA_URL", "MINE", "MLEREDUX_X_TOKEN", "MLEREDUX_TOKEN", "MLEREDUX_A_KEY")
    variables = dict.fromkeys((*kept, *gone), "planted")
    for _ in range(2):  # from the plugin, then from the index
        ended = site.python(code, MLEREDUX_PLUGINS=str(tmp_path / "mine.py"), **variables)
        assert ended.returncode == 0, ended.stderr
        states, environment = json.loads(ended.stdout)
        assert {name for name in environment if environment[name] == "planted"} == set(kept)
        assert states.count("found") >= 2, "alpha is not imported for it"


def test_a_broken_plugin_is_tried_once_until_it_is_fixed_or_asked_about(site: Site, tmp_path: Path) -> None:
    tries = tmp_path / "tries"
    site.install("broken", f"open({str(tries)!r}, 'a').write('x')\nraise RuntimeError('boom')")
    site.good("zeta")
    for _ in range(3):
        found = site.listed()
        assert found["states"]["broken"] == "failed" and "boom" in found["problems"][0]
    assert tries.read_text() == "x" and found["tasks"] == ["zeta-task"]
    assert "boom" in _main(site, tmp_path, "plugins").stderr and tries.read_text() == "xx"
    site.change("broken", "raise RuntimeError('boom')", "")
    assert site.listed()["problems"] == []


def test_a_plugin_that_failed_for_what_is_outside_of_it_works_again_after_it_was_asked_about(
    site: Site, tmp_path: Path
) -> None:
    site.install("needy", f"open({str(tmp_path / 'helper')!r})\n" + GOOD.format(name="needy"))
    assert "FileNotFoundError" in site.listed()["problems"][0]
    (tmp_path / "helper").touch()
    assert _main(site, tmp_path, "plugins").stderr == ""
    assert site.listed()["tasks"] == ["needy-task"]


def test_a_plugin_that_ends_the_process_is_named_and_takes_no_other_along(site: Site) -> None:
    site.good("alpha")
    site.install("broken", "import os; os._exit(7)")
    site.good("zeta")
    found = site.listed()
    assert found["tasks"] == ["alpha-task", "zeta-task"]
    assert found["problems"][0].startswith("Plugin 'broken' ends the process that imports it (exit code 7")


def test_what_plugins_print_while_they_are_imported_reaches_nobody(site: Site) -> None:
    site.install("alpha", "print('hello')\n" + GOOD.format(name="alpha"))
    assert "hello" not in site.python(LIST).stdout


def test_a_plugin_may_look_at_the_others_while_it_is_imported(site: Site) -> None:
    site.good("alpha")
    site.install("nosy", "from mleredux._core.plugins import current\nprint(list(current().entries('tasks')))")
    assert site.listed()["tasks"] == ["alpha-task"]


def test_many_first_commands_at_once_import_a_plugin_once(site: Site, tmp_path: Path) -> None:
    tries = tmp_path / "tries"
    site.install("alpha", f"open({str(tries)!r}, 'a').write('x')\n" + GOOD.format(name="alpha"))
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: site.listed(), range(4)):
            assert found["tasks"] == ["alpha-task"] and found["problems"] == []
    assert tries.read_text() == "x"


@pytest.mark.parametrize("content", ["{", "{}", "[]", '{"state": 1}'])
def test_a_damaged_cache_is_written_again(site: Site, content: str) -> None:
    site.good("alpha")
    site.listed()
    for path in (site.path.parent / "cache" / "mleredux" / "index").glob("*.json"):
        path.write_text(content)
    found = site.listed()
    assert found["tasks"] == ["alpha-task"] and found["problems"] == []


def test_a_cache_of_odd_content_is_written_again(site: Site) -> None:
    site.good("alpha")
    site.listed()
    (path,) = (site.path.parent / "cache" / "mleredux" / "index").glob("plugins-*.json")
    content = json.loads(path.read_text())
    for odd in ({}, [], {"core": content["remembered"]["core"], "plugins": {"alpha": {"of": 1}}}):
        path.write_text(json.dumps({**content, "remembered": odd}))
        found = site.listed()
        assert found["tasks"] == ["alpha-task"] and found["problems"] == []


def test_a_cache_that_can_not_be_written_is_done_without(site: Site) -> None:
    site.good("alpha")
    found = site.listed(XDG_CACHE_HOME="/proc/nowhere")
    assert found["tasks"] == ["alpha-task"] and found["problems"] == []


GET = """
from mleredux.errors import MlereduxError
from mleredux._core.plugins import Catalogue
from mleredux_support.installed import GOOD, LIST, Site
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


def test_what_can_not_be_loaded_is_listed_and_said_when_it_is_used(site: Site) -> None:
    site.good("alpha")
    refs = '[Ref("alpha-gone", "alpha:GONE"), Ref("alpha-other", "alpha:TASK"), Ref("alpha-task", "alpha:TASK")]'
    site.change("alpha", "return [TASK]", f"return {refs}")
    first, gone, other = got(site, "alpha-task", "alpha-gone", "alpha-other")
    assert first == "got alpha-task"
    assert gone.startswith("PluginError The task 'alpha-gone' of plugin 'alpha' can't be loaded from alpha:GONE")
    assert "has the id 'alpha-task', not 'alpha-other'" in other
    assert len(site.listed()["problems"]) == 2


def test_a_plugin_that_registers_other_things_than_when_it_was_imported_is_told_how_to_say_so(site: Site) -> None:
    site.good("alpha")
    site.change("alpha", "return [TASK]", "import os\n    return [TASK] if 'FIRST' in os.environ else []")
    assert site.listed(FIRST="1")["tasks"] == ["alpha-task"]
    (told,) = got(site, "alpha-task")
    assert "Plugin 'alpha' no longer registers task 'alpha-task'. Set mleredux_dynamic = ('tasks',)" in told


def test_duplicate_ids_can_not_be_used_by_mistake(site: Site) -> None:
    site.good("alpha")
    site.install("beta", GOOD.format(name="beta").replace("beta-task", "alpha-task"))
    (told,) = got(site, "alpha-task")
    assert told.startswith("PluginError The task id 'alpha-task' is registered by plugin 'alpha'")


def test_variants_are_made_when_asked_for_and_mistakes_are_named(site: Site) -> None:
    site.good("alpha")
    odd, bad, none, near = got(site, "alpha-task+odd", "alpha-task+bad", "alpha-task+none", "alpha-tsk")
    assert "has the id 'alpha-task'" in odd
    assert "The task 'alpha-task+bad' can't be created (ZeroDivisionError" in bad
    assert none.startswith("NotFound Task alpha-task has no variant 'none'.")
    assert none.endswith(" It has: alpha-task+bad, alpha-task+odd, alpha-task+debug-ROWS.")
    assert "Did you mean alpha-task?" in near


def test_two_plugins_of_one_name_are_told_apart(site: Site) -> None:
    site.good("alpha")
    site.install("second", GOOD.format(name="second"), entry="alpha")
    found = site.listed()
    sentence = "The plugin name 'alpha' is claimed by alpha and second: none of them is used; uninstall or rename one."
    assert found["tasks"] == []
    assert found["problems"] == [sentence]
    assert found["states"]["alpha"] == "failed"


def test_plugins_are_blocked_by_name(site: Site) -> None:
    site.install("alpha", "raise AssertionError('imported')")
    site.good("beta")
    assert site.listed(MLEREDUX_BLOCK_PLUGINS="alpha, nobody")["states"]["alpha"] == "blocked"
    assert site.listed(MLEREDUX_BLOCK_PLUGINS="alpha")["tasks"] == ["beta-task"]


def _main(site: Site, folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    code = f"import os; os.chdir({str(folder)!r}); sys.argv[1:] = {list(arguments)!r}\n"
    return site.python(code + "from mleredux._core.cli.root import main; main()", **environment)


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
    assert missing.returncode == 0 and "does not exist; specify a .py file" in missing.stderr


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "does not exist; specify a .py file"),
        ("import nothing_here", "can't be imported from"),
        (GOOD.format(name="mine").replace("def mleredux_", "def mleredux_x"), "it implements unknown hooks"),
    ],
)
def test_no_command_works_without_a_plugin_that_the_user_requested(
    site: Site, tmp_path: Path, content: str | None, reason: str
) -> None:
    if content is not None:
        (tmp_path / "mine.py").write_text(content)
    for command in (("runs",), ("run", "alpha-task", "--agent", "x"), ("show", "alpha-task")):
        refused = _main(site, tmp_path, "-p", "mine.py", *command)
        assert refused.returncode == 1 and reason in refused.stderr, refused
    assert content is None or _main(site, tmp_path, "-p", "mine.py", "--block", "mine", "runs").returncode == 0
    assert reason in _main(site, tmp_path, "-p", "mine.py", "plugins").stderr


def test_a_plugin_file_does_not_take_the_place_of_another_module(site: Site, tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "json.py").write_text("loads = None")
    told = _main(site, tmp_path, "-p", "below/json.py", "list", "--json")
    assert json.loads(told.stdout) == [], told.stderr


def test_hook_calls_can_be_traced(site: Site) -> None:
    site.good("alpha")
    code = """
from mleredux._core.plugins import Catalogue
from mleredux_support.installed import GOOD, LIST, Site
catalogue = Catalogue()
task = catalogue.task("alpha-task")
catalogue.hook("mleredux_grade").get_hookimpls()
catalogue.hook("mleredux_produce_artifacts")(run=None)
"""
    assert "mleredux_produce_artifacts" in site.python(code, MLEREDUX_TRACE="1").stderr
    assert "mleredux_produce_artifacts" not in site.python(code, MLEREDUX_TRACE="0").stderr


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


@pytest.mark.parametrize("hook", ["register_pages()", "produce_artifacts(run)"])
def test_a_plugin_without_entries_shows_what_it_registers(site: Site, tmp_path: Path, hook: str) -> None:
    source = f"from mleredux.plugin import hookimpl\nmleredux_contract = 2\n@hookimpl\ndef mleredux_{hook}:"
    site.install("looks", f"{source}\n    return []\n")
    [row] = [line for line in _main(site, tmp_path, "plugins").stdout.splitlines() if line.startswith("looks")]
    assert hook.partition("(")[0].removeprefix("register_") in row.split()
