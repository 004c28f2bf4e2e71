"""Select the Docker engine as Docker's own command does: `DOCKER_HOST`, else the current context, else the socket."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from mleredux.errors import SandboxError


def selected() -> tuple[dict[str, Any], str]:
    """Return the arguments of docker's client for the selected engine, and words that name the engine.

    Raises:
        SandboxError: The selected context does not exist, or Docker's configuration is damaged.
    """
    from docker.utils import kwargs_from_env

    arguments: dict[str, Any] = {**kwargs_from_env()}
    if "base_url" in arguments:
        return arguments, f"{arguments['base_url']} (DOCKER_HOST)"
    folder = Path(os.environ.get("DOCKER_CONFIG") or os.path.expanduser("~/.docker"))  # noqa: PTH111 (need no home)
    config, name = folder / "config.json", os.environ.get("DOCKER_CONTEXT")
    source, remedy = "DOCKER_CONTEXT", "unset DOCKER_CONTEXT"
    if not name:
        source, remedy = str(config), "run `docker context use default`"
        name = _read(config).get("currentContext")
    if not name or name == "default":
        return arguments, "its local socket"
    place = hashlib.sha256(str(name).encode()).hexdigest()
    try:
        endpoint = _read(folder / "contexts/meta" / place / "meta.json")["Endpoints"]["docker"]
        host, verify = str(endpoint["Host"]), not endpoint.get("SkipTLSVerify")
    except (KeyError, TypeError, AttributeError):
        raise SandboxError(
            f"The Docker context {name!r}, selected by {source}, does not exist or names no engine.",
            hint=f"Choose one of `docker context ls`, or {remedy}.",
        ) from None
    if tls := _tls(folder / "contexts/tls" / place / "docker", verify):
        arguments["tls"] = tls
    return {**arguments, "base_url": host}, f"{host} (context {name!r}, selected by {source})"


def _tls(folder: Path, verify: bool) -> Any:
    """Return the TLS configuration of a context, or None if it has no certificates."""
    from docker.tls import TLSConfig

    if not folder.is_dir():
        return None
    ca, certificate, key = (str(folder / f"{name}.pem") for name in ("ca", "cert", "key"))
    pair = (certificate, key) if Path(certificate).is_file() else None
    return TLSConfig(client_cert=pair, ca_cert=ca if Path(ca).is_file() else None, verify=verify)


def _read(path: Path) -> dict[str, Any]:
    """Return a JSON object of Docker's configuration, empty if the file does not exist."""
    try:
        content = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or f"it is damaged: {error}"
    else:
        if isinstance(content, dict):
            return content
        why = "it is damaged: it contains no object"
    raise SandboxError(
        f"Docker's configuration {path} can't be read ({why}).",
        hint="Correct or delete the file, or set DOCKER_HOST to the engine's address.",
    )
