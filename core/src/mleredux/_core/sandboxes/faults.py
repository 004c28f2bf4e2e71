"""Recognize machine faults in the output of programs, so that every sandbox reports a fault with the same sentence."""

from __future__ import annotations

import re

from mleredux.errors import disk_full, unusable_folder

_NO_NAME = re.compile(
    r"no such host|name resolution|name or service not known|could ?n.t resolve host|could not resolve host"
    r"|server misbehaving|nodename nor servname|dns error",
    re.IGNORECASE,
)


def machine_fault(error: BaseException) -> str | None:
    """Return a sentence if an error is a full disk, a folder that can't be written, or names without an address."""
    if sentence := disk_full(error) or unusable_folder(error):
        return sentence
    if _NO_NAME.search(str(error)):
        return "Host names can't be resolved. Check this machine's network, its DNS servers and its proxy settings."
    return None
