"""Generates the synchronous client when a wheel is built, even an editable one."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class SyncHook(BuildHookInterface):
    """Writes `_sync` into the source tree, where git ignores it, and has it packed."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Generate the files, and name them as artifacts: hatchling leaves out what git ignores."""
        runpy.run_path(str(Path(self.root) / "generate_sync.py"))["generate"]()
        build_data["artifacts"].append("src/mleredux_client/_sync/*.py")
