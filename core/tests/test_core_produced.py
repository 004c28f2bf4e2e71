"""What fails at the end of a run is said where its user looks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from mleredux._core.cli.local import _view
from mleredux._core.cli.run_table import print_results
from mleredux.models.events import Warned


@pytest.mark.parametrize("plugin", ["words", None])
def test_a_warning_is_printed_below_the_results(toy: Any, plugin: str | None, capsys: Any) -> None:
    run = toy.run("copy")
    run.emit(Warned(plugin=plugin, path=None if plugin else "output/x", message="Producing artifacts failed: KeyError"))
    print_results([_view(run)])
    assert f"{plugin or 'output/x'}: Producing artifacts failed: KeyError" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("message", ["one\ntwo\n  three", "a \x1b[31mred\x1b[0m word", "half \ud800 a pair", "x\r\ny"])
def test_messages_keep_their_lines_and_never_control_the_terminal(toy: Any, message: str, capsys: Any) -> None:
    run = toy.run("copy")
    print_results([replace(_view(run), message=message)])
    out = capsys.readouterr().out
    assert "\x1b[31m" not in out and "\\n" not in out
    for line in message.split("\n"):
        assert line.strip().partition("\x1b")[0].partition("\ud800")[0].strip() in out
