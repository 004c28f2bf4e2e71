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

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mleredux._core.data.datastore import DataStore, Prepared

__all__ = ["DataStore", "Prepared"]


def __getattr__(name: str) -> Any:
    """Import the store of data on first use, as lists of tasks need only the names of samples."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from mleredux._core.data import datastore

    return getattr(datastore, name)
