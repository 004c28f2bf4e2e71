"""Every check of a plugin: as a parameter for pytest, and as `mleredux conformance`."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import click
from mleredux._core.plugins import Catalogue, Plugin
from mleredux._core.plugins.directory import directory
from mleredux._core.plugins.discovery import SINGULAR
from mleredux.errors import MlereduxError, NotFound
from mleredux.models.formats import counted
from mleredux.plugin.command import catalogue, json_option, print_json

from mleredux_testing.findings import Findings, NotConforming
from mleredux_testing.graders import NONE_FIT

_MARKS = {"passed": ("✓", "green"), "failed": ("✗", "red"), "not checked": ("-", "yellow")}
_OWN_ANSWERS = "it rejects the toy answers; pass others: `mleredux_testing.check_grader(…, answers=…, options=…)`."
_SKIPPED = "not checked: "


@click.command("conformance")
@click.argument("package")
@click.option("--only", multiple=True, metavar="ID", help="Check only this registered object.")
@json_option
@click.pass_context
def command(ctx: click.Context, package: str, only: tuple[str, ...], as_json: bool) -> None:
    """Check that PACKAGE, an installed distribution or a plugin, follows the contract.

    Each of its plugins is checked, and each task, technique, agent, grader, sandbox and executor that they
    register: tasks are prepared twice, agents run on a small task in the process sandbox. Prints one line per check.

    \b
    Exit codes: 0 it conforms · 1 error · 2 usage · 3 it does not conform
    """
    installed = catalogue(ctx)
    plugins = plugins_of(installed, package)
    rows = []
    for row in _rows(installed, plugins, only):
        rows.append(row)
        if not as_json:
            _show(row)
    if only and len(rows) == len(plugins):
        raise NotFound(f"Package {package} registers no {', '.join(only)}.", hint="See `mleredux plugins`.")
    failed = sum(row["result"] == "failed" for row in rows)
    if as_json:
        print_json({"package": package, "conforms": not failed, "checks": rows})
    else:
        skipped = sum(row["result"] == "not checked" for row in rows)
        end = f", {skipped} not checked" if skipped else ""
        click.echo(f"{package}: {len(rows) - failed - skipped} of {counted(len(rows), 'check')} passed{end}.")
    ctx.exit(3 if failed else 0)


def plugins_of(installed: Catalogue, package: str) -> list[Plugin]:
    """Return the plugins of a distribution, or the plugin with this name.

    Raises:
        NotFound: There are no such plugins.
    """
    wanted = _normal(package)
    plugins = [plugin for plugin in installed.plugins if plugin.distribution and _normal(plugin.distribution) == wanted]
    plugins = plugins or [entry for entry in installed.plugins if entry.name == package and entry.source != "built in"]
    if plugins:
        return plugins
    try:
        metadata.version(package)
    except (metadata.PackageNotFoundError, ValueError):
        known = next((entry.command for entry in directory() if entry.name == wanted), None)
        hint = f"Install it: `{known}`." if known else "Install it into this environment; see `mleredux plugins`."
        raise NotFound(f"No package or plugin {package!r} is installed.", hint=hint) from None
    raise NotFound(
        f"Package {package} has no plugin.",
        hint='Its entry point belongs in [project.entry-points.mleredux], as `NAME = "module"`.',
    )


def _rows(installed: Catalogue, plugins: list[Plugin], only: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    for plugin in plugins:
        yield _row("plugins", plugin.name)
        for kind, name in registered(installed, plugin.name):
            if only and name not in only:
                continue
            why = _beyond(installed, kind, name)
            yield _result(kind, name, "not checked", [why]) if why else _row(kind, name)


def _beyond(installed: Catalogue, kind: str, name: str) -> str | None:
    """Return the reason why a task can't be checked on this machine."""
    try:
        needs = kind == "tasks" and installed.task(name).check_fetch is not None
    except MlereduxError:
        return None  # the check reports the problem
    return (
        "its raw data needs an account; specify the files: `mleredux_testing.check_task(…, raw=…)`." if needs else None
    )


def _row(kind: str, name: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="mleredux-conformance-") as folder:
        try:
            findings = check(kind, name, Path(folder))
        except NotConforming as error:
            wrong = error.findings.wrong
            if len(wrong) == 1 and wrong[0].message.startswith(NONE_FIT):
                return _result(kind, name, "not checked", [_OWN_ANSWERS])
            lines = [f"{issue.name}: {issue.message}{f' {issue.remedy}' if issue.remedy else ''}" for issue in wrong]
            return _result(kind, name, "failed", lines)
    return _result(kind, name, "passed", _omitted(findings))


def _omitted(findings: Findings) -> list[str]:
    return [f"{finding.name} {finding.message}" for finding in findings.all if finding.message.startswith(_SKIPPED)]


def _result(kind: str, name: str, result: str, messages: list[str]) -> dict[str, Any]:
    return {"kind": SINGULAR.get(kind, "plugin"), "id": name, "result": result, "messages": messages}


def _show(row: dict[str, Any]) -> None:
    mark, colour = _MARKS[row["result"]]
    first, *rest = row["messages"] or [""]
    if row["result"] == "failed" or rest:
        first, rest = "", row["messages"]
    click.echo(f"{click.style(mark, fg=colour)} {row['kind']} {row['id']}{f' ({first})' if first else ''}")
    for message in rest:
        click.echo(f"    {message}")


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


Check = Callable[[Path], Findings]


def checks(
    plugin: str,
    *,
    only: Collection[str] | None = None,
    skip: Mapping[str, str] | None = None,
    **arguments: Mapping[str, Any],
) -> list[Any]:
    """Return parameters for a test: the check of a plugin, and of each object that it registers and that has checks.

    ```python
    @pytest.mark.parametrize("check", testing.checks("my-plugin"))
    def test_conforms(check, tmp_path):
        check(tmp_path)
    ```

    Args:
        plugin: The plugin's name.
        only: Ids of the objects to check; empty: all.
        skip: Id → reason for skipping its check; shown as a skipped test.
        arguments: Further arguments of checks, by kind: `agents={"time_limit": 30}`, `graders={"map-at-k": {…}}`
            (for one id), `sandboxes={…}`, `tasks={…}`.

    Returns:
        One `pytest.param` for each check; each is called with a folder, and raises `NotConforming`.
    """
    import pytest  # slow to import for `mleredux conformance`, which does not need it

    params: list[Any] = [pytest.param(lambda _tmp: check("plugins", plugin), id=f"plugin {plugin}")]
    catalogue = Catalogue()
    for kind, name in registered(catalogue, plugin):
        if only is not None and name not in only:
            continue
        settings = dict(arguments.get(kind, {}))
        own = settings.pop(name, None)
        named = {key: value for key, value in settings.items() if key not in catalogue.entries(kind)}
        marks = [pytest.mark.skip(reason=skip[name])] if skip and name in skip else []
        bound = partial(check, kind, name, arguments={**named, **(own or {})})
        params.append(pytest.param(bound, id=f"{kind.removesuffix('s')} {name}", marks=marks))
    return params


def registered(catalogue: Catalogue, plugin: str) -> Iterator[tuple[str, str]]:
    """Yield all objects that a plugin registers and that have checks: kind and id."""
    for kind in ("tasks", "techniques", "agents", "graders", "sandboxes", "executors"):
        try:
            entries = catalogue.entries(kind).values()
        except MlereduxError:
            continue  # the check of the plugin reports the problem
        yield from ((kind, entry.id) for entry in entries if entry.plugin.name == plugin)


def check(kind: str, name: str, tmp: Path | None = None, arguments: Mapping[str, Any] | None = None) -> Findings:
    """Run the check of one object.

    Args:
        kind: `plugins`, or a kind of registered objects.
        name: The plugin's name, or the id.
        tmp: A folder.
        arguments: Further arguments of the check.

    Raises:
        NotConforming: With all problems.
    """
    import mleredux_testing as testing

    if kind == "plugins":
        return testing.check_plugin(name)
    checker: Callable[..., Findings] = getattr(testing, f"check_{SINGULAR[kind]}")
    return checker(name, tmp, **(arguments or {}))
