"""Images of agents: found in the engine by content, or built once, with a time limit and masked passwords in logs."""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mleredux.errors import AgentBroken, BuildFailed, SandboxError
from mleredux.models.formats import plain
from mleredux.plugin.files import FileLock
from mleredux.plugin.sandbox import BuildRequest, Built, Finding, note_use

from mleredux_containers import host, layers, recipe
from mleredux_containers.building import BuildLimits, build_limits, network_of, proxy_arguments
from mleredux_containers.dockerfile import BASE_ARGUMENT
from mleredux_containers.profile import Container, Image

BASE_VARIABLE = "MLEREDUX_BASE_IMAGE"
"""Variable that names the base image of agents without an image."""
DEFAULT_BASE = "python:3.13-slim"
MLE_BENCH_ARGUMENTS = {
    "SUBMISSION_DIR": "/home/submission",
    "LOGS_DIR": "/home/logs",
    "CODE_DIR": "/home/code",
    "AGENT_DIR": "/home/agent",
}
# MLE-bench's entry point does this as root at each start; our entry point never runs as root.
_OPEN_HOME = "RUN mkdir -p {folder} && find /home {folder} -path /home/data -prune -o -exec chmod a+rwX {{}} +\n"
_LAST_LINES = 15
_MOST_BYTES = 20 << 20
"""Maximum size of the stored output of a build, in bytes."""
_STEP = re.compile(r"^(?:\[\d+/\d+\] )?step (\d+)/(\d+) ?: (.*)", re.IGNORECASE)


class BuildLog:
    """The log of one request, and its remaining time.

    Attributes:
        steps: Number of builds and downloads so far; 0 if all images existed.
    """

    def __init__(self, request: BuildRequest) -> None:
        self.request = request
        self.steps = 0
        self._hidden: list[str] = []
        self._room = _MOST_BYTES
        self._end = time.monotonic() + request.time_limit
        self._step, self._last = "the first step", deque[str](maxlen=_LAST_LINES)

    @property
    def seconds_left(self) -> float:
        """The seconds until the request's time limit, at least 0.1; exactly 0.1 if the user cancelled the request."""
        return 0.1 if self.request.cancelled() else max(0.1, self._end - time.monotonic())

    def begin(self, arguments: dict[str, str]) -> None:
        """Start the log of a build; passwords in its arguments are masked."""
        self.steps += 1
        self._hidden = host.secrets(arguments)
        self._step, self._last = "the first step", deque(maxlen=_LAST_LINES)

    def write(self, text: str) -> None:
        """Append output of the engine, and show its current step to the user."""
        text = host.mask(text, self._hidden)
        if not text.strip():
            return
        if self._room > 0:
            self.request.log.parent.mkdir(parents=True, exist_ok=True)
            with self.request.log.open("a", encoding="utf-8", errors="replace") as file:
                file.write(text if text.endswith("\n") else text + "\n")
            self._room -= len(text)
        self._last.extend(line for line in text.splitlines() if line.strip())
        if match := _STEP.match(text):
            self._step = f"step {match[1]} of {match[2]} ({match[3].strip()})"
            self.request.progress(f"building: {self._step}")

    def failed(self) -> BuildFailed:
        """Return the error of a build that ended with an error."""
        return self._failure(f"The image build failed at {self._step}", recipe=True)

    def timed_out(self) -> BuildFailed:
        """Return the error of a build that exceeded its time limit.

        Raises:
            Cancelled: The user cancelled the build.
        """
        self.request.check_cancelled()
        return self._failure(
            f"Building the image took longer than {plain(self.request.time_limit)} s, up to {self._step}", recipe=True
        )

    def too_large(self, limit: int) -> BuildFailed:
        """Return the error for a build in which a step exceeded the disk limit."""
        sentence = f"The image build needed more than {limit >> 20:,} MB of disk at {self._step}"
        return self._failure(sentence, recipe=True)

    def broken_off(self) -> BuildFailed:
        """Return the error of a build that the engine aborted without giving a reason."""
        return self._failure(f"The engine aborted the build at {self._step}")

    def _failure(self, sentence: str, *, recipe: bool = False) -> BuildFailed:
        return BuildFailed(
            f"{sentence}. Agent {self.request.agent.id}, last lines:\n" + "\n".join(self._last),
            hint=f"\nFull log: {self.request.log}",
            by_agent=recipe and self.request.agent.build.context is not None,
        )


@dataclass(frozen=True)
class ImageBuild:
    """An image to build.

    Attributes:
        plan: The files of the build.
        tag: The name of the image.
        arguments: Build arguments.
        log: The log of the build, which also creates the errors.
        secret: Whether the arguments contain a password, which must not remain in any stage.
        limits: The limits of each step.
        sidecar: The container whose network the steps share; None if they have no network.
    """

    plan: recipe.Recipe
    tag: str
    arguments: dict[str, str]
    log: BuildLog
    secret: bool
    limits: BuildLimits
    sidecar: str | None


class ImageEngine(Protocol):
    """An engine that stores images. An engine that can't build images may raise an error in `build_image`."""

    id: str
    """The name of the engine, in messages."""

    def find_image(self, name: str) -> Image | None:
        """Return an image by name or id; None if the engine does not have it."""

    def pull(self, name: str, log: BuildLog) -> None:
        """Fetch an image from its registry.

        Raises:
            BuildFailed: Time ran out.
            SandboxError: The image can't be fetched; the message contains a short reason.
        """

    def build_image(self, build: ImageBuild) -> None:
        """Build an image within limits, with its output in the log; only base images are fetched.

        Raises:
            BuildFailed: A step failed, or time ran out.
        """

    def start_sidecar(self, spec: Container) -> str:
        """Start a container that is removed automatically when it ends; return its id."""

    def remove_sidecar(self, container: str) -> None:
        """Stop and remove a container."""


def base_image(request: BuildRequest | None = None) -> str:
    """Return the name of the base image of agents without an image."""
    return (request.base_image if request else None) or os.environ.get(BASE_VARIABLE) or DEFAULT_BASE


def base_finding(engine: str, image: Image | None) -> Finding:
    """Return a finding on whether an engine has the base image."""
    title, name = f"{engine} base image", base_image()
    if image is not None:
        return Finding(title, True, f"The base image {name} is available ({image.id[:19]}).")
    message = f"The base image {name} is not available; the first build fetches it."
    remedy = f"Without a registry, set {BASE_VARIABLE} to an available image; see docs/reference/sandboxes.md."
    return Finding(title, False, message, remedy)


def build(request: BuildRequest, engine: ImageEngine) -> Built:
    """Find the agent's image, or build it.

    Raises:
        BuildFailed: A step of the build failed or timed out.
        SandboxError: The engine is unreachable, or a base image is unavailable.
    """
    log, agent, declared = BuildLog(request), request.agent, request.agent.build
    if declared.image:
        hint = f"Load it with `{engine.id} load`, or fix the agent's `image`."
        image = _present(engine, log, declared.image, hint)
        tag = image.id
    else:
        plan = recipe.from_context(declared) if declared.context else recipe.generated(declared)
        base = None
        if BASE_ARGUMENT in plan.text:
            hint = (
                f"Specify an available one with --base-image or {BASE_VARIABLE}; an air-gapped site can build "
                "one from Debian packages (see docs/reference/sandboxes.md)."
            )
            base = _present(engine, log, base_image(request), hint)
        named = [_present(engine, log, name, "Fix it in the Dockerfile.") for name in plan.bases]
        identities = [image.id for image in (base, *named) if image is not None]
        repository = re.sub(r"[^a-z0-9]+", "-", agent.id.lower()).strip("-")
        tag = f"mleredux/{repository}:{plan.key(' '.join(identities))}"
        existing = engine.find_image(tag)
        if existing is None and (parts := layers.split(plan)):
            head, lines = parts
            key = head.key(f"{' '.join(identities)} {request.hosts}")
            below = _once(engine, log, head, f"mleredux/layers:{key}", base)
            note_use(engine.id, f"mleredux/layers:{key}")
            plan, base = layers.on_layers(plan, _reference(below), lines), None
        image = existing or _once(engine, log, plan, tag, base)
        note_use(engine.id, tag)
    limit = declared.max_image_mb
    if limit is not None and image.size_mb > limit:
        raise AgentBroken(
            f"The image of agent {agent.id} takes up {image.size_mb:,} MB; the limit is {limit:,} MB.",
            hint="Install fewer packages, or start from a smaller base image.",
        )
    return _open_home(engine, log, image, tag)


def _once(engine: ImageEngine, log: BuildLog, plan: recipe.Recipe, tag: str, base: Image | None) -> Image:
    """Return the image with a tag; if it does not exist, build it, in one process at a time."""
    if image := engine.find_image(tag):
        return image
    with _lock(f"{engine.id} {tag}", log):
        if image := engine.find_image(tag):
            return image
        arguments = {} if plan.generated else dict(MLE_BENCH_ARGUMENTS)
        if base is not None:
            arguments["BASE_IMAGE"] = _with_certificates(engine, log, base)
        _make(engine, log, plan, tag, arguments)
    image = engine.find_image(tag)
    if image is None:
        raise SandboxError(f"The engine built {tag}, but the image is missing.", hint="Is its disk full? Try again.")
    return image


def _make(engine: ImageEngine, log: BuildLog, plan: recipe.Recipe, tag: str, arguments: dict[str, str]) -> None:
    arguments = {**host.build_arguments(generated=plan.generated), **arguments}
    log.begin(arguments)
    secret = any(name.startswith("PIP_") and host.secrets({name: value}) for name, value in arguments.items())
    limits = build_limits(log.request.agent.build.max_image_mb)
    with network_of(engine, log, _with_python(engine, log, plan) if plan.network else None) as (sidecar, egress):
        arguments |= proxy_arguments() if sidecar else {}
        try:
            engine.build_image(ImageBuild(plan, tag, arguments, log, secret, limits, sidecar))
        except BuildFailed as error:
            error.by_agent = error.by_agent and not (egress and egress.unreachable)
            raise


def _with_python(engine: ImageEngine, log: BuildLog, plan: recipe.Recipe) -> Image | None:
    """Return an image for the container that provides the network of builds, or None."""
    for name in (base_image(log.request), *plan.bases):
        if image := engine.find_image(name):
            return image
    with suppress(SandboxError):
        return _present(engine, log, base_image(log.request), "")
    return None


def _with_certificates(engine: ImageEngine, log: BuildLog, base: Image) -> str:
    """Return the base image with the certificates that this machine trusts."""
    bundle = host.ca_bundle()
    if bundle is None:
        return base.id
    tag = f"mleredux/base:{base.id.removeprefix('sha256:')[:16]}-{host.ca_key(bundle)}"
    if not engine.find_image(tag):
        log.request.progress("adding this machine's certificates to the base image")
        _make(engine, log, recipe.on_top(_reference(base), host.CA_LAYER, {"ca.crt": bundle}), tag, {})
    return tag


def _open_home(engine: ImageEngine, log: BuildLog, image: Image, tag: str) -> Built:
    """Make the agent's home writable in an image made for MLE-bench; return other images unchanged."""
    if folder := image.agent_dir:
        if re.search(r"[^\w./-]", folder):
            raise SandboxError(f"The image's AGENT_DIR {folder!r} is not a plain path.", hint="Fix it in the image.")
        plan = recipe.on_top(_reference(image), _OPEN_HOME.format(folder=folder), generated=False)
        tag = f"mleredux/home:{plan.key(image.id)}"
        image = _once(engine, log, plan, tag, None)
        note_use(engine.id, tag)
    return Built(identity=image.id, reference=tag, cached=log.steps == 0)


def _reference(image: Image) -> str:
    """Return a reference for `FROM`, preferably a tag, because newer builders search for bare ids in a registry."""
    return image.tags[0] if image.tags else image.id


def _present(engine: ImageEngine, log: BuildLog, name: str, hint: str) -> Image:
    """Return a required image, fetched from its registry if it is missing."""
    if image := engine.find_image(name):
        return image
    log.steps += 1
    log.request.progress(f"fetching image {name}")
    try:
        engine.pull(name, log)
    except BuildFailed:
        raise
    except SandboxError as error:
        raise SandboxError(f"Image {name} is missing and can't be fetched ({error.message}).", hint=hint) from error
    image = engine.find_image(name)
    if image is None:
        raise SandboxError(f"Image {name} was fetched, but is missing.", hint=hint)
    return image


@contextmanager
def _lock(name: str, log: BuildLog) -> Iterator[None]:
    """Lock the build of an image on this machine."""
    folder = Path(tempfile.gettempdir()) / f"mleredux-{os.getuid()}-builds"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise SandboxError(f"{folder} belongs to another user.", hint="Set TMPDIR to your own folder.")
    plain = re.sub(r"[^\w.-]", "_", name)
    lock = FileLock(folder / f"{plain}.lock")
    if not lock.acquire():
        log.request.progress("waiting for another process to build the same image")
        while not lock.acquire():
            log.request.check_cancelled()
            time.sleep(0.2)
    try:
        yield
    finally:
        lock.release()
