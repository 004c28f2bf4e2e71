"""For code that handles files: safe reading of files written by (hostile) agents, downloads, and atomic writes.

Names, sizes and links in an agent's folder are untrusted; these functions do not follow links::

    from mleredux.plugin.artifact import Run
    from mleredux.plugin.files import open_below

    def first_part(run: Run) -> bytes:
        with open_below(run.output_dir, "notes/log.json") as file:
            return file.read(1 << 20)
"""

from __future__ import annotations

from mleredux._core import masks as _masks
from mleredux._core.locations import cache_dir as cache_dir
from mleredux._core.masks import Mask as Mask
from mleredux._core.plain import plain_path as plain_path
from mleredux._core.redirects import MAX_HOPS as MAX_HOPS
from mleredux._core.redirects import host_addresses as host_addresses
from mleredux._core.redirects import redirected as redirected
from mleredux._core.store.files import FileLock as FileLock
from mleredux._core.store.files import write_atomically as write_atomically
from mleredux._core.store.files import write_once as write_once
from mleredux._core.store.sparse import remove_tree as remove_tree
from mleredux._core.submissions import intake as _intake
from mleredux._core.submissions.files import open_below as open_below
from mleredux._core.submissions.files import open_regular as open_regular
from mleredux._core.submissions.intake import IntakeLimits as IntakeLimits
from mleredux._core.submissions.intake import disk_usage as disk_usage
from mleredux._core.submissions.intake import media_type as media_type
from mleredux.models import paths as _paths

secret_forms = _masks.forms
FoundFile = _intake.FoundFile
walk_files = _intake.walk
path_of_readable = _paths.path_of
readable_path = _paths.readable
