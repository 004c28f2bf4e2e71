"""The package keeps the contract of plugins, and its index is current."""

from __future__ import annotations

import json
import subprocess
import sys

from mleredux.plugins.indexing import make_index


def test_the_index_file_is_current() -> None:
    path, content = make_index("gateway")
    assert path.read_text(encoding="utf-8") == content, f"write make_index('gateway') to {path}"


def test_planning_a_run_imports_no_server() -> None:
    program = (
        "import sys, json; from mleredux.plugins import Catalogue;"
        "assert Catalogue().hook('mleredux_open_gateway').get_hookimpls();"
        "print(json.dumps([m for m in ('aiohttp', 'litellm') if m in sys.modules]))"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert json.loads(answer.stdout) == []
