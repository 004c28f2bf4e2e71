"""Agents' images: found in the engine by content, or built once."""

from __future__ import annotations

import fcntl
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mleredux.errors import AgentBroken, SandboxError
from mleredux.plugin.agent import Agent
from mleredux.plugin.sandbox import BuildRequest, Built

from mleredux_sandbox_docker import host, recipe
from mleredux_sandbox_docker.building import Builder
from mleredux_sandbox_docker.container import agent_dir
from mleredux_sandbox_docker.engine import connect, engine_errors, find_image, reason

if TYPE_CHECKING:
    from docker import APIClient

BASE_VARIABLE = "MLEREDUX_BASE_IMAGE"
DEFAULT_BASE = "python:3.13-slim"
MLE_BENCH_ARGUMENTS = {
    "SUBMISSION_DIR": "/home/submission",
    "LOGS_DIR": "/home/logs",
    "CODE_DIR": "/home/code",
    "AGENT_DIR": "/home/agent",
}
# MLE-bench's entry point does this as root at each start; ours never is root.
_OPEN_HOME = "RUN mkdir -p {folder} && find /home {folder} -path /home/data -prune -o -exec chmod a+rwX {{}} +\n"


def base_image(request: BuildRequest | None = None) -> str:
    """The name of the base image of agents that bring none."""
    asked = request.base_image if request else None
    return asked or os.environ.get(BASE_VARIABLE) or DEFAULT_BASE


def build(request: BuildRequest) -> Built:
    """Make the agent's image, or find it.

    Raises:
        BuildFailed: A step of the build failed, or took too long.
        SandboxError: The engine can't be reached, or a base image can't be had.
    """
    client = connect()
    try:
        with engine_errors("The agent's image can't be made"):
            builder = Builder(request)
            agent, asked = request.agent, request.agent.build
            if asked.image:
                image = _present(
                    client, builder, asked.image, "Load it with `docker load`, or mend `image` of the agent."
                )
                built = Built(identity=image["Id"], reference=image["Id"], cached=builder.steps == 0)
            else:
                plan = recipe.from_context(asked) if asked.context else recipe.generated(asked)
                base = None
                if recipe.BASE_ARGUMENT in plan.text:
                    hint = (
                        f"Name one that is there with --base-image or {BASE_VARIABLE}; an air-gapped site makes "
                        "one of Debian packages (see `docs/reference/sandboxes.md`)."
                    )
                    base = _present(client, builder, base_image(request), hint)
                named = [find_image(client, name) for name in plan.bases]
                identities = [image["Id"] for image in (base, *named) if image is not None]
                tag = f"mleredux/{_repository(agent.id)}:{plan.key(' '.join(identities))}"
                image = _once(client, builder, plan, tag, base)
                built = Built(identity=image["Id"], reference=tag, cached=builder.steps == 0)
            _refuse_too_large(agent, image)
            return _open_home(client, builder, image, built)
    finally:
        client.close()


def _refuse_too_large(agent: Agent, image: dict[str, Any]) -> None:
    limit, size = agent.build.max_image_mb, int(image.get("Size") or 0) >> 20
    if limit is not None and size > limit:
        raise AgentBroken(
            f"The image of agent {agent.id} has {size:,} MB, its limit is {limit:,} MB.",
            hint="Install less in it, or begin with a smaller base.",
        )


def _once(
    client: APIClient, builder: Builder, plan: recipe.Recipe, tag: str, base: dict[str, Any] | None
) -> dict[str, Any]:
    """The image of that tag, built if there is none, by one process at a time."""
    if image := find_image(client, tag):
        return image
    with _lock(tag, builder):
        if image := find_image(client, tag):
            return image
        arguments = {} if plan.generated else dict(MLE_BENCH_ARGUMENTS)
        if base is not None:
            arguments["BASE_IMAGE"] = _with_certificates(client, builder, base)
        builder.build(plan, tag, arguments)
    image = find_image(client, tag)
    if image is None:
        raise SandboxError(f"The engine built {tag} and does not have it.", hint="Is its disk full? Try again.")
    return image


def _with_certificates(client: APIClient, builder: Builder, base: dict[str, Any]) -> str:
    """The base image with the certificates that this machine trusts."""
    bundle = host.ca_bundle()
    if bundle is None:
        return str(base["Id"])
    tag = f"mleredux/base:{base['Id'].removeprefix('sha256:')[:16]}-{host.ca_key(bundle)}"
    if not find_image(client, tag):
        builder.progress("adding this machine's certificates to the base image")
        builder.build(recipe.on_top(_reference(base), host.CA_LAYER, {"ca.crt": bundle}), tag, {})
    return tag


def _open_home(client: APIClient, builder: Builder, image: dict[str, Any], built: Built) -> Built:
    """An image made for MLE-bench with a home that its agent may write; any other unchanged."""
    variables = dict(item.partition("=")[::2] for item in image["Config"].get("Env") or ())
    folder = agent_dir(variables)
    if folder is None:
        return built
    if re.search(r"[^\w./-]", folder):
        raise SandboxError(f"The image's AGENT_DIR {folder!r} is no plain path.", hint="Mend it in the image.")
    plan = recipe.on_top(_reference(image), _OPEN_HOME.format(folder=folder))
    tag = f"mleredux/home:{plan.key(image['Id'])}"
    opened = _once(client, builder, plan, tag, None)
    return Built(identity=opened["Id"], reference=tag, cached=builder.steps == 0)


def _repository(agent: str) -> str:
    """An agent's id as a repository may be named."""
    return re.sub(r"[^a-z0-9]+", "-", agent.lower()).strip("-")


def _reference(image: dict[str, Any]) -> str:
    """What `FROM` takes: a tag where there is one, since newer builders look for a bare id in a registry."""
    tags: list[str] = image.get("RepoTags") or []
    return tags[0] if tags else str(image["Id"])


def _present(client: APIClient, builder: Builder, name: str, hint: str) -> dict[str, Any]:
    """An image that must be there, fetched from its registry if it is not."""
    import docker
    import requests

    if image := find_image(client, name):
        return image
    try:
        builder.pull(client, name)
    except (docker.errors.DockerException, requests.RequestException) as error:
        raise SandboxError(f"Image {name} is not there and can't be fetched ({reason(error)}).", hint=hint) from error
    image = find_image(client, name)
    if image is None:
        raise SandboxError(f"Image {name} was fetched and is not there.", hint=hint)
    return image


@contextmanager
def _lock(tag: str, builder: Builder) -> Iterator[None]:
    """Held by whoever builds that tag, on this machine."""
    folder = Path(tempfile.gettempdir()) / f"mleredux-{os.getuid()}-builds"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise SandboxError(f"{folder} belongs to somebody else.", hint="Set TMPDIR to a folder of your own.")
    name = re.sub(r"[^\w.-]", "_", tag)
    with (folder / f"{name}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            builder.progress("waiting for the same image to be built by another process")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
