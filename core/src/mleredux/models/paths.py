"""Convert paths of arbitrary bytes to text for manifests and pages, and back.

Standard library only, so the client can use it without importing the rest of mleredux.
"""

from __future__ import annotations

import codecs
import re

_ESCAPE = re.compile(r"(\\x[0-9a-f]{2}|\\u[0-9a-f]{4}|\\U00(?:0[0-9a-f]|10)[0-9a-f]{4}|\\[\\tnr])")
_MAX_PATH = 4096
"""The kernel's maximum length of a path, in bytes."""


def readable(path: bytes) -> str:
    """Return a path of arbitrary bytes as text; different paths give different texts.

    Bytes that are not UTF-8, control characters and backslashes are escaped.
    """
    text = path.replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")
    return "".join(char if char.isprintable() else _escape(char) for char in text)


def _escape(char: str) -> str:
    # `\x85` is a byte, `\u0085` the character
    return f"\\u{ord(char):04x}" if 0x80 <= ord(char) < 0x100 else char.encode("unicode_escape").decode()


def path_of(text: str) -> bytes | None:
    """Return the path for which `readable` returned this text; None if no file in a folder can have that path."""
    path = unescaped(text)
    if b"\0" in path or len(path) >= _MAX_PATH or any(part in (b"", b".", b"..") for part in path.split(b"/")):
        return None
    return path if readable(path) == text else None


def unescaped(text: str) -> bytes:
    """Return a text's bytes with the escapes of `readable` undone, even if `readable` did not produce the text."""
    return b"".join(map(_unescape, _ESCAPE.split(text)))


def _unescape(part: str) -> bytes:
    escaped = _ESCAPE.fullmatch(part) is not None
    if escaped and part[1] == "x":
        return bytes.fromhex(part[2:])
    return (codecs.decode(part, "unicode_escape") if escaped else part).encode("utf-8", "surrogatepass")
