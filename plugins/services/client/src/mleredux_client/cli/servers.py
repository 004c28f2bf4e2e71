"""The selected server and its token, from the environment or from a file that only its owner can read."""

from __future__ import annotations

import json
import os
import shlex
import stat
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mleredux.errors import MlereduxError, file_errors
from mleredux.plugin.files import write_atomically

TOKEN_VARIABLE = "MLEREDUX_TOKEN"
MAX_TOKEN = 1024
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def clean_url(text: str) -> str:
    """Normalize a server's URL for storage and requests: scheme, host, port, and the path before `/v1`.

    Raises:
        MlereduxError: It is not such a URL, or contains a user name or password.
    """
    try:
        parts = urlsplit(text.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        parts, host, port = urlsplit(""), None, None
    if parts.username is not None or parts.password is not None:  # never quoted: it may be a secret
        hint = f"Remove it; the token comes from `mleredux login` or {TOKEN_VARIABLE}."
        raise MlereduxError("The server's URL contains a user name or password.", hint=hint)
    if parts.scheme not in ("http", "https") or not host or any(not char.isprintable() for char in text):
        raise MlereduxError(f"{text!r} is not a server's URL.", hint="Write it like https://mleredux.example:8000.")
    if parts.query or parts.fragment:
        raise MlereduxError(f"{text!r} has a query or a fragment.", hint="Remove the part after ? or #.")
    name = f"[{host}]" if ":" in host else host
    usual = {"http": 80, "https": 443}[parts.scheme]
    path = parts.path.rstrip("/").removesuffix("/v1").rstrip("/")
    return f"{parts.scheme}://{name}{'' if port in (None, usual) else f':{port}'}{path}"


def in_the_clear(url: str) -> bool:
    """Return whether traffic can be intercepted, because it goes to another machine without TLS."""
    parts = urlsplit(url)
    return parts.scheme == "http" and parts.hostname not in _LOOPBACK


def check_token(text: str) -> str:
    """Return a token that is valid in a header.

    Raises:
        MlereduxError: The text can't be a token. The message does not quote it.
    """
    token = text.strip()
    if not token or len(token) > MAX_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise MlereduxError("That is not a token.", hint="A token is a single word, like mlr_…; nothing was stored.")
    return token


def token_of(url: str) -> str | None:
    """Return the token for a server: `MLEREDUX_TOKEN`, else the token that `mleredux login` stored for exactly this
    URL."""
    token = os.environ.get(TOKEN_VARIABLE, "")
    if token.strip():
        return check_token(token)
    kept = _read().get(url)
    return check_token(kept["token"]) if kept else None


def keep_token(url: str, token: str) -> Path:
    """Store a server's token; return the path of the file."""
    _write({**_read(), url: {"token": token}})
    return servers_file()


def forget_token(url: str) -> bool:
    """Remove a server's stored token; return whether there was one."""
    kept = _read()
    if url not in kept:
        return False
    _write({name: entry for name, entry in kept.items() if name != url})
    return True


def kept_servers() -> list[str]:
    """Return the URLs of servers whose tokens are stored."""
    return sorted(_read())


def servers_file() -> Path:
    """Return `mleredux/servers.json` in the user's configuration folder."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "mleredux" / "servers.json"


def _read() -> dict[str, dict[str, Any]]:
    path = servers_file()
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            content = json.loads(file.read(1 << 20))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        hint = "Fix or remove it, then `mleredux login URL`."
        raise MlereduxError(f"{path} can't be read ({type(error).__name__}).", hint=hint) from None
    if os.name == "posix" and mode & 0o077:
        hint = f"`chmod 600 {shlex.quote(str(path))}`, and revoke the tokens if someone may have read them."
        raise MlereduxError(f"{path} contains tokens, and other users may read it (mode {mode:04o}).", hint=hint)
    servers = content.get("servers") if isinstance(content, dict) else None
    if not isinstance(servers, dict) or not all(
        isinstance(entry, dict) and isinstance(entry.get("token"), str) for entry in servers.values()
    ):
        raise MlereduxError(f"{path} is damaged.", hint="Remove it, then `mleredux login URL`.")
    return servers


def _write(servers: dict[str, dict[str, Any]]) -> None:
    """Replace the file atomically; it is never readable by others, not even for a moment."""
    path = servers_file()
    with file_errors(MlereduxError, f"{path} can't be written", f"Use {TOKEN_VARIABLE} instead."):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_atomically(path, json.dumps({"servers": servers}, indent=1) + "\n", mode=0o600)
