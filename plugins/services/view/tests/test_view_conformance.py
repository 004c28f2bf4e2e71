"""The package meets the plugin contract, and listing it imports no server."""

from __future__ import annotations

import subprocess
import sys

import mleredux_testing as testing


def test_the_plugin_meets_the_contract() -> None:
    testing.check_plugin("view")


def test_listing_it_imports_no_server() -> None:
    program = "import sys, mleredux_view; print([m for m in ('starlette', 'jinja2', 'uvicorn') if m in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
