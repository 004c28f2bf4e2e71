"""Every command can be called: its function takes the parameters that its options and arguments give it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click
import pytest
from mleredux._core.cli.root import root
from mleredux.plugin.command import Catalogue


def _commands(group: click.Group, context: click.Context, names: tuple[str, ...] = ()) -> Iterator[object]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, name
        below = click.Context(command, parent=context, info_name=name)
        if isinstance(command, click.Group):
            yield from _commands(command, below, (*names, name))
        yield pytest.param(command, id=" ".join((*names, name)))


def _all() -> list[object]:
    return list(_commands(root, click.Context(root, info_name="mleredux", obj=Catalogue())))


@pytest.mark.parametrize("command", _all())
def test_a_command_takes_its_parameters(command: click.Command) -> None:
    if command.callback is None:
        return
    given = {param.name for param in command.params if param.expose_value}
    taken = list(inspect.signature(command.callback).parameters.values())
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in taken):
        assert given <= {parameter.name for parameter in taken}
    needed = {
        one.name for one in taken if one.default is one.empty and one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)
    }
    assert len(needed - given) <= 1, "besides what `pass_context` or `pass_obj` gives"
