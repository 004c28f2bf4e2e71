"""The data of tasks: fetched, prepared into public and private files, checked, sampled.

| modules | contents |
|---|---|
| `datastore`, `folders` | all data of a folder; the folders of one task |
| `archives`, `checksums`, `space` | raw data: unpacked, verified, and whether there is room for it |
| `neutral` | prepared files without names and times that tell one from another |
| `installation` | the secret salt of this installation, and the mark of answers |
| `debug_sample`, `medals` | the variant `+debug-N` of a task; thresholds of medals |
| `progress` | how far the preparation is |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mleredux._core.data.datastore import DataStore, Prepared

__all__ = ["DataStore", "Prepared"]


def __getattr__(name: str) -> Any:
    """Import the store of data on first use: lists of tasks need only names of samples."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from mleredux._core.data import datastore

    return getattr(datastore, name)
