"""TODO files"""

from __future__ import annotations

from mleredux._core.locations import cache_dir
from mleredux._core.masks import Mask, forms
from mleredux._core.store.files import FileLock, write_atomically
from mleredux._core.store.trees import remove_tree
from mleredux._core.submissions.intake import Found, IntakeLimits, disk_usage, media_type, readable, walk
from mleredux._core.submissions.validation import open_below, open_regular

__all__ = [
    "FileLock",
    "Found",
    "IntakeLimits",
    "Mask",
    "cache_dir",
    "disk_usage",
    "forms",
    "media_type",
    "open_below",
    "open_regular",
    "readable",
    "remove_tree",
    "walk",
    "write_atomically",
]
