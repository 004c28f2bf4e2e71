"""Removing trees that somebody hostile made: any depth, any names, folders without permissions."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from mleredux._core.sandboxes.mounts import unmount_below


def remove_tree(path: Path) -> bool:
    """Remove a folder and all below it, following no link; never raises for what lies in there.

    What is mounted there, as in the run directory of a killed program, is unmounted first.

    `shutil.rmtree` ends at a thousand levels, and paths end at 4,096 bytes; `chmod` and `rm` know neither end.

    Returns:
        Whether it is gone.
    """
    if path.is_dir() and not path.is_symlink():
        unmount_below(path)
        for command in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
            subprocess.run([*command, "--", os.fspath(path)], capture_output=True)
    return not os.path.lexists(path)
