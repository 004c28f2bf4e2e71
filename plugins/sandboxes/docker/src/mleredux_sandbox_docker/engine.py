"""Connect to the Docker engine that Docker's own command selects, and explain what to do if it is unreachable."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mleredux.errors import SandboxError, file_fault
from mleredux_containers import FIND, Image

if TYPE_CHECKING:
    from docker import APIClient


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
        why = file_fault(error)
    else:
        if isinstance(content, dict):
            return content
        why = "it is damaged: it contains no object"
    raise SandboxError(
        f"Docker's configuration {path} can't be read ({why}).",
        hint="Correct or delete the file, or set DOCKER_HOST to the engine's address.",
    )


_START = "Start the engine (`sudo systemctl start docker`), or set DOCKER_HOST or DOCKER_CONTEXT to another."
_ALLOW = "Add your user to the group `docker` (`sudo usermod -aG docker $USER`), and log in again."
_CORRECT = "Correct the address: unix:///PATH, tcp://HOST:PORT, or ssh://USER@HOST (with the package `paramiko`)."
_CERTIFY = "Set DOCKER_CERT_PATH to the folder with ca.pem, cert.pem and key.pem, or unset DOCKER_TLS_VERIFY."
_EQUIP = "Install nvidia-container-toolkit; its `nvidia-ctk cdi generate` writes the specification of this machine."
_REASONS: dict[type[BaseException], tuple[str, str]] = {
    FileNotFoundError: ("the socket does not exist", _START),
    NotADirectoryError: ("the socket does not exist", _START),
    ConnectionRefusedError: ("no engine listens there", _START),
    PermissionError: ("you have no permission for the socket", _ALLOW),
    socket.gaierror: ("the host is unknown", _CORRECT),
}
"""What errors of the operating system mean, and what to do."""
_CALL_SECONDS = 120


def connect(cls: type[APIClient] | None = None) -> APIClient:
    """Return a client of the selected engine, by default the local engine.

    Args:
        cls: The client class, docker's own by default.

    Raises:
        SandboxError: The engine is unreachable, or its selection is faulty.
    """
    import docker

    where = "its address"
    try:
        arguments, where = selected()
        # The version is requested with a short time limit: a dead engine must not block a user.
        version = docker.APIClient(**arguments, timeout=10).version()["ApiVersion"]
        return (cls or docker.APIClient)(**arguments, version=version, timeout=_CALL_SECONDS)
    except (docker.errors.DockerException, OSError, ValueError, KeyError, ImportError) as error:
        why, hint = _explained(error)
        raise SandboxError(f"The Docker engine can't be reached at {where}: {why}.", hint=hint) from error


def _explained(error: BaseException) -> tuple[str, str]:
    """Return why the engine is unreachable, and what to do, according to the first known error in a chain."""
    import docker
    import requests

    cause: BaseException | None = error
    while cause is not None:
        if known := _REASONS.get(type(cause)):
            return known
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, docker.errors.TLSParameterError) or type(error) is OSError:
        return f"its certificates are missing ({reason(error)})", _CERTIFY
    return reason(error), _START if isinstance(error.__cause__ or error, requests.RequestException) else _CORRECT


def reason(error: BaseException) -> str:
    """Return the engine's error message on one line."""
    if isinstance(error, KeyError):  # docker's client expects some fields
        return f"its response lacks {error}"
    text = getattr(error, "explanation", None) or str(error) or type(error).__name__
    line = " ".join(str(text).split()).rstrip(".")
    return line if len(line) <= 600 else line[:600] + "…"


@contextlib.contextmanager
def engine_errors(what: str, hint: str | None = None) -> Iterator[None]:
    """Convert the engine's exceptions to a `SandboxError` that names the failed operation."""
    import docker
    import requests

    try:
        yield
    except (docker.errors.DockerException, requests.RequestException, KeyError) as error:
        why = reason(error)
        if "could not select device driver" in why:
            why, hint = "the engine has no toolkit for GPUs, and there is no CDI specification", _EQUIP
        raise SandboxError(f"{what} ({why}).", hint=hint) from error


def find_image(client: APIClient, name: str) -> Image | None:
    """Return an image of the engine, or None if it does not exist."""
    image = find_record(client, name)
    return Image.from_record(image) if image else None


def find_record(client: APIClient, name: str) -> dict[str, Any] | None:
    """Return the engine's record of an image, or None if it does not exist."""
    import docker

    with contextlib.suppress(docker.errors.ImageNotFound):
        return client.inspect_image(name)  # type: ignore[no-any-return, no-untyped-call]
    return None


def list_files(client: APIClient, image: str, user: tuple[int, int]) -> str:
    """Return the paths of an image's files that a user can see, listed by a container of the image."""
    host = client.create_host_config(network_mode="none", cap_drop=["ALL"], security_opt=["no-new-privileges:true"])
    name = f"{user[0]}:{user[1]}"
    created = client.create_container(image, entrypoint=list(FIND), command=[], user=name, host_config=host)["Id"]
    try:
        client.start(created)
        if client.wait(created, timeout=_CALL_SECONDS)["StatusCode"]:
            raise SandboxError(f"The files of image {image} can't be listed: it has no `find` program.")
        return str(client.logs(created, stderr=False).decode(errors="surrogateescape"))
    finally:
        client.remove_container(created, force=True)


@contextlib.contextmanager
def ignore_missing() -> Iterator[None]:
    """Ignore errors that occur because a container or network is gone, or because a container no longer runs."""
    import docker

    try:
        yield
    except docker.errors.APIError as error:
        if error.status_code not in (404, 409):
            raise


def security_options(info: dict[str, Any]) -> set[str]:
    """Return the names of the engine's security options: `seccomp`, `rootless`, `userns`, …"""
    named = (option.split(",")[0] for option in info.get("SecurityOptions") or ())
    return {option.partition("name=")[2] or option for option in named}
