"""Remove trees written by a hostile program: of any depth, with any names, and with folders without permissions."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from mleredux._core.sandboxes.mounts import unmount_below


def remove_tree(path: Path) -> bool:
    """Remove a folder and its content without following links; this never raises because of the content.

    Anything mounted there, as in the run directory of a killed program, is unmounted first.

    `shutil.rmtree` is limited to a thousand levels, and paths to 4,096 bytes; `chmod` and `rm` have neither limit.

    Returns:
        Whether the folder was removed.
    """
    if path.is_dir() and not path.is_symlink():
        unmount_below(path)
        for command in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
            subprocess.run([*command, "--", os.fspath(path)], capture_output=True)
    return not os.path.lexists(path)
