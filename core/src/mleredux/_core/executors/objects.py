"""The protocol of object stores, which carry files between machines that share no file system."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol, runtime_checkable


class Stored(NamedTuple):
    """An object as it was read.

    Attributes:
        content: Its bytes.
        tag: Changes with every write of it.
    """

    content: bytes
    tag: str


@runtime_checkable
class ObjectStore(Protocol):
    """Objects by key. All methods may be called from several threads, and raise `StoreError` if it does not respond."""

    url: str
    """Without credentials: jobs get it in their command line."""
    variables: tuple[str, ...]
    """Environment variables that may hold credentials; a node deletes them before it executes a run."""

    def read(self, key: str) -> Stored | None:
        """Return an object; None if there is none."""

    def write(self, key: str, content: bytes) -> None:
        """Write an object, whatever is there."""

    def swap(self, key: str, content: bytes, tag: str | None) -> str | None:
        """Replace an object if it still has this tag, or create it if there is none and `tag` is None.

        Returns:
            The new tag; None if another writer was first.
        """

    def keys(self, folder: str) -> Iterable[str]:
        """Return the keys of all objects below a folder, which ends without a slash."""

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects; those that do not exist are ignored."""
