"""Object stores opened by plugins, and content-addressed objects."""

from __future__ import annotations

import hashlib

from mleredux.errors import StoreError
from mleredux.plugin.command import Catalogue
from mleredux.plugin.executor import ObjectStore


def open_store(catalogue: Catalogue, url: str) -> ObjectStore:
    """Open the object store at a URL.

    Raises:
        StoreError: No installed plugin supports the URL, or the URL is invalid.
    """
    opened = catalogue.call_scheme("open_store", url)
    if opened is None:
        raise StoreError(
            f"No installed plugin supports the object store {url}.",
            hint="For s3://BUCKET/PREFIX install mleredux-store-s3[s3].",
        )
    store: ObjectStore = opened
    return store


def digest(content: bytes) -> str:
    """Return the SHA-256 in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def read_verified(store: ObjectStore, key: str) -> bytes | None:
    """Return an object whose key ends with its SHA-256; None if it does not exist.

    Raises:
        StoreError: The content does not match the hash.
    """
    stored = store.read(key)
    if stored is not None and digest(stored.content) != key.rpartition("/")[2]:
        raise StoreError(f"Object {key} of {store.url} is damaged.", hint="Its content does not match its hash.")
    return stored.content if stored is not None else None
