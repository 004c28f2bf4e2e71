"""Programs with thousands of sessions have file descriptors above 1,023, which `select.select` refuses."""

from __future__ import annotations

import ast
import os
import resource
from pathlib import Path

from mleredux._core.forkserver import readable as socket_readable
from mleredux_agentkit.wire import readable

ROOT = Path(__file__).parents[1]


def test_no_source_calls_select() -> None:
    refused = []
    for path in (path for top in ("core", "kits", "plugins") for path in ROOT.glob(f"{top}/**/src/**/*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "select" in text else ():
            call = isinstance(node, ast.Attribute) and ast.unparse(node) == "select.select"
            named = isinstance(node, ast.ImportFrom) and node.module == "select"
            chosen = isinstance(node, ast.Attribute) and node.attr == "SelectSelector"
            if call or chosen or (named and any(name.name == "select" for name in node.names)):
                refused.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not refused, "use `mleredux_agentkit.wire.readable`, `select.poll` or `selectors`"


def test_descriptors_above_1023_are_waited_for() -> None:
    reading, writing = os.pipe()
    number = 1500
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, number + 1), hard), hard))
    try:
        os.dup2(reading, number)
        assert readable([number, reading], 0) == set()
        os.write(writing, b"x")
        assert readable([number, reading]) == {number, reading}
        assert socket_readable(number, 0)
    finally:
        for file in (reading, writing, number):
            os.close(file)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
