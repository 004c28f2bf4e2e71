"""The package meets the plugin contract, and its index is current."""

from __future__ import annotations

import json
import subprocess
import sys

import mleredux_testing as testing


def test_the_plugin_meets_the_contract() -> None:
    testing.check_plugin("scripted-llm")


def test_listing_it_imports_no_server() -> None:
    program = (
        "import sys, json; from mleredux._core.plugins import Catalogue; Catalogue().entries('commands');"
        "import mleredux_scripted_llm; print(json.dumps([m for m in ('aiohttp', 'yaml') if m in sys.modules]))"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert json.loads(answer.stdout) == []
