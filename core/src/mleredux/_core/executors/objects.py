"""The protocol of object stores, which carry files between machines that share no file system."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from mleredux.errors import StoreError

if TYPE_CHECKING:
    from mleredux._core.plugins import Catalogue


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


def open_store(catalogue: Catalogue, url: str) -> ObjectStore:
    """Open the object store at a URL.

    Raises:
        StoreError: No installed plugin knows such URLs, or it is invalid.
    """
    found = catalogue.hook("mleredux_open_store")(url=url)
    if found is None:
        raise StoreError(
            f"No installed plugin opens the object store {url}.",
            hint="For s3://BUCKET/PREFIX install mleredux-store-s3[s3].",
        )
    store: ObjectStore = found
    return store


def digest(content: bytes) -> str:
    """SHA-256, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def read_verified(store: ObjectStore, key: str) -> bytes | None:
    """Return an object whose key ends with its SHA-256; None if there is none.

    Raises:
        StoreError: Its content is another.
    """
    found = store.read(key)
    if found is not None and digest(found.content) != key.rpartition("/")[2]:
        raise StoreError(f"Object {key} of {store.url} is damaged.", hint="Its content does not have its hash.")
    return found.content if found is not None else None
