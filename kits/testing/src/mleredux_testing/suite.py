"""Every check of a plugin as a parameter for pytest."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from mleredux._core.plugins import Catalogue
from mleredux._core.plugins.discovery import SINGULAR
from mleredux.errors import MlereduxError

from mleredux_testing.findings import Findings

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
    params: list[Any] = [pytest.param(lambda _tmp: check("plugins", plugin), id=f"plugin {plugin}")]
    catalogue = Catalogue()
    for kind, name in registered(catalogue, plugin):
        if only is not None and name not in only:
            continue
        given = dict(arguments.get(kind, {}))
        own = given.pop(name, None)
        named = {key: value for key, value in given.items() if key not in catalogue.entries(kind)}
        marks = [pytest.mark.skip(reason=skip[name])] if skip and name in skip else []
        bound = _bind(kind, name, {**named, **(own or {})})
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


def _bind(kind: str, name: str, arguments: dict[str, Any]) -> Check:
    return lambda tmp: check(kind, name, tmp, arguments)


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
    found: Callable[..., Findings] = getattr(testing, f"check_{SINGULAR[kind]}")
    return found(name, tmp, **(arguments or {}))
