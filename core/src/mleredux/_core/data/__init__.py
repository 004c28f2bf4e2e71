"""The data of tasks: fetching, preparation into public and private files, checks, samples.

| modules | contents |
|---|---|
| `datastore`, `folders` | the store of data in a folder; the folders of one task |
| `archives`, `checksums`, `space` | raw data: unpacking, checksums, and disk space |
| `neutral` | prepared files without distinguishing names and times |
| `installation` | the secret salt of this installation, and canaries |
| `debug_sample`, `medals` | the variant `+debug-N` of a task; medal thresholds |
| `progress` | progress of the preparation |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mleredux.models.imports import on_first_use

if TYPE_CHECKING:
    from mleredux._core.data.datastore import DataStore as DataStore
    from mleredux._core.data.datastore import Prepared as Prepared

__getattr__, __all__ = on_first_use(__name__, {".datastore": "DataStore Prepared"})
"""The store of data is imported on first use, as lists of tasks need only the names of samples."""
