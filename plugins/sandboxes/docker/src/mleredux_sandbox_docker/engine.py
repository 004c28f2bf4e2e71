"""Connect to the Docker engine, and explain what to do if it is unreachable."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from mleredux.errors import SandboxError
from mleredux_containers import FIND, Image

if TYPE_CHECKING:
    from docker import APIClient

UNREACHABLE_HINT = (
    "Start the engine (`sudo systemctl start docker`), make sure that you may use its socket (group `docker`), or "
    "set DOCKER_HOST."
)
_CALL_SECONDS = 120


def connect(cls: type[APIClient] | None = None) -> APIClient:
    """Return a client of the engine at `DOCKER_HOST`, by default the local engine.

    Args:
        cls: The client class, docker's own by default.

    Raises:
        SandboxError: The engine is unreachable.
    """
    import docker
    import requests
    from docker.utils import kwargs_from_env

    try:
        # The version is requested with a short time limit: a dead engine must not block a user.
        arguments = kwargs_from_env()
        version = docker.APIClient(**arguments, timeout=10).version()["ApiVersion"]
        return (cls or docker.APIClient)(**arguments, version=version, timeout=_CALL_SECONDS)
    except (docker.errors.DockerException, requests.RequestException) as error:
        where = os.environ.get("DOCKER_HOST") or "its local socket"
        raise SandboxError(
            f"The Docker engine can't be reached at {where} ({reason(error)}).", hint=UNREACHABLE_HINT
        ) from error


def reason(error: BaseException) -> str:
    """Return the engine's error message on one line."""
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
    except (docker.errors.DockerException, requests.RequestException) as error:
        raise SandboxError(f"{what} ({reason(error)}).", hint=hint) from error


def find_image(client: APIClient, name: str) -> Image | None:
    """Return an image of the engine, or None if it does not exist."""
    found = find_record(client, name)
    return Image.from_record(found) if found else None


def find_record(client: APIClient, name: str) -> dict[str, Any] | None:
    """Return the engine's record of an image, or None if it does not exist."""
    import docker

    try:
        return client.inspect_image(name)  # type: ignore[no-any-return, no-untyped-call]
    except docker.errors.ImageNotFound:
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
def gone_is_fine() -> Iterator[None]:
    """Ignore errors because a container or network is gone, or no longer runs."""
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
