"""For code that handles files: safe reading of files written by (hostile) agents, downloads, and atomic writes.

Names, sizes and links in an agent's folder are untrusted; these functions do not follow links::

    from mleredux.plugin.artifact import Run
    from mleredux.plugin.files import open_below

    def first_part(run: Run) -> bytes:
        with open_below(run.output_dir, "notes/log.json") as file:
            return file.read(1 << 20)
"""

from __future__ import annotations

from mleredux._core.locations import cache_dir
from mleredux._core.masks import Mask
from mleredux._core.masks import forms as secret_forms
from mleredux._core.plain import plain_path
from mleredux._core.redirects import MAX_HOPS, host_addresses, redirected
from mleredux._core.store.files import FileLock, write_atomically
from mleredux._core.store.trees import remove_tree
from mleredux._core.submissions.files import open_below, open_regular
from mleredux._core.submissions.intake import Found as FoundFile
from mleredux._core.submissions.intake import IntakeLimits, disk_usage, media_type
from mleredux._core.submissions.intake import walk as walk_files
from mleredux.models.paths import path_of as path_of_readable
from mleredux.models.paths import readable as readable_path

__all__ = [
    "MAX_HOPS",
    "FileLock",
    "FoundFile",
    "IntakeLimits",
    "Mask",
    "cache_dir",
    "disk_usage",
    "host_addresses",
    "media_type",
    "open_below",
    "open_regular",
    "path_of_readable",
    "plain_path",
    "readable_path",
    "redirected",
    "remove_tree",
    "secret_forms",
    "walk_files",
    "write_atomically",
]
