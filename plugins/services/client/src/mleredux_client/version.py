"""The client's version."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("mleredux-client")
except PackageNotFoundError:  # run from a source tree
    VERSION = "0"
USER_AGENT = f"mleredux-client/{VERSION}"
