"""File names chosen by agents, made safe for headers and archives."""

from __future__ import annotations

import hashlib
import re
from urllib.parse import quote

MAX_NAME = 255
"""Maximum length of a name in bytes in file systems."""
_MEDIA_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]{1,100}/[A-Za-z0-9!#$&^_.+-]{1,100}")
_DEVICES = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)
_UNSAFE = frozenset('<>:"|?*\\')


def disposition(path: str, *, inline: bool) -> str:
    """Return a `Content-Disposition` that names the file (RFC 6266, RFC 8187); no name can break out of the header."""
    name = path.rpartition("/")[2] or "file"
    plain = re.sub(r"[^A-Za-z0-9._ -]", "_", name)[:200]
    exact = quote(name[:200], safe="", errors="replace")
    return f"{'inline' if inline else 'attachment'}; filename=\"{plain}\"; filename*=UTF-8''{exact}"


def media_type_of(claimed: str) -> str:
    """Return a media type that is safe in a header."""
    return claimed if _MEDIA_TYPE.fullmatch(claimed) else "application/octet-stream"


def archive_name(path: str) -> str:
    """Return a path that any program can unpack: relative, without `..`, drives, devices or control characters.

    Unsafe characters are written as `%XX` of their UTF-8 bytes, as is `%` itself, so that names remain distinct and
    `urllib.parse.unquote` restores the manifest's path; only if the result is too long for file systems is its end
    replaced by a hash.
    """
    return "/".join(_shortened(_archive_part(part)) for part in path.split("/"))


def _shortened(part: str) -> str:
    whole = part.encode("utf-8", "replace")
    if len(whole) <= MAX_NAME:
        return part
    return f"{whole[:200].decode('utf-8', 'ignore')}~{hashlib.sha256(whole).hexdigest()[:32]}"


def _archive_part(part: str) -> str:
    safe = "".join(
        char if char.isprintable() and char not in _UNSAFE and char != "%" else quote(char, safe="", errors="replace")
        for char in part
    )
    if safe in ("", ".", "..") or safe[-1] in ". ":  # the last: Windows would drop it
        safe = safe[:-1] + (f"%{ord(safe[-1]):02X}" if safe else "%")
    if safe[0] == " " or _DEVICES.fullmatch(safe):
        safe = f"%{ord(safe[0]):02X}{safe[1:]}"
    return safe
