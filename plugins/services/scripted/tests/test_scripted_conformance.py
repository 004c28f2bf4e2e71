"""The package keeps the contract of plugins, and its index is current."""

from __future__ import annotations

import json
import subprocess
import sys

from mleredux.plugins.indexing import make_index


def test_the_index_file_is_current() -> None:
    path, content = make_index("scripted")
    assert path.read_text(encoding="utf-8") == content, f"write make_index('scripted') to {path}"


def test_listing_it_imports_no_server() -> None:
    program = (
        "import sys, json; from mleredux.plugins import Catalogue; Catalogue().entries('commands');"
        "import mleredux_scripted; print(json.dumps([m for m in ('aiohttp', 'yaml') if m in sys.modules]))"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert json.loads(answer.stdout) == []
