"""Agents' images: found in the engine by content, or built once, within a time limit, with a log without passwords."""

from __future__ import annotations

import fcntl
import os
import re
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from mleredux.errors import AgentBroken, BuildFailed, SandboxError
from mleredux.plugin.sandbox import BuildRequest, Built, Finding, note_use

from mleredux_containers import host, layers, recipe
from mleredux_containers.building import BuildLimits, build_limits, proxy_arguments, way_out
from mleredux_containers.dockerfile import BASE_ARGUMENT
from mleredux_containers.profile import Container, Image

BASE_VARIABLE = "MLEREDUX_BASE_IMAGE"
"""Variable that names the base image of agents that bring none."""
DEFAULT_BASE = "python:3.13-slim"
MLE_BENCH_ARGUMENTS = {
    "SUBMISSION_DIR": "/home/submission",
    "LOGS_DIR": "/home/logs",
    "CODE_DIR": "/home/code",
    "AGENT_DIR": "/home/agent",
}
# MLE-bench's entry point does this as root at each start; ours never is root.
_OPEN_HOME = "RUN mkdir -p {folder} && find /home {folder} -path /home/data -prune -o -exec chmod a+rwX {{}} +\n"
_LAST_LINES = 15
_MOST_BYTES = 20 << 20
"""What is kept of a build's output."""
_STEP = re.compile(r"^(?:\[\d+/\d+\] )?step (\d+)/(\d+) ?: (.*)", re.IGNORECASE)


class BuildLog:
    """The log of one request, and the time that is left for it.

    Attributes:
        steps: Builds and fetches done so far; 0 where everything was found.
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
        """Until the request's time limit, at least 0.1; 0.1 where the user stopped it."""
        return 0.1 if self.request.cancelled() else max(0.1, self._end - time.monotonic())

    def begin(self, arguments: dict[str, str]) -> None:
        """Note that a build begins; passwords of its arguments are hidden."""
        self.steps += 1
        self._hidden = host.secrets(arguments)
        self._step, self._last = "the first step", deque(maxlen=_LAST_LINES)

    def write(self, text: str) -> None:
        """Append what the engine says, and tell the user which step it is at."""
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
        return self._failure(f"The image's build failed at {self._step}", recipe=True)

    def timed_out(self) -> BuildFailed:
        """Return the error of a build that exceeded its time limit.

        Raises:
            Cancelled: The user stopped it.
        """
        self.request.check_cancelled()
        return self._failure(
            f"The image was not built within {self.request.time_limit:g} s; it was at {self._step}", recipe=True
        )

    def too_large(self, limit: int) -> BuildFailed:
        """Return the error of a build in which a step wrote too much."""
        what = f"The image's build needed more than {limit >> 20:,} MB of disk at {self._step}"
        return self._failure(what, recipe=True)

    def broken_off(self) -> BuildFailed:
        """Return the error of a build that the engine ended without a reason."""
        return self._failure(f"The engine broke the build off at {self._step}")

    def _failure(self, what: str, *, recipe: bool = False) -> BuildFailed:
        return BuildFailed(
            f"{what}. Agent {self.request.agent.id}, last lines:\n" + "\n".join(self._last),
            hint=f"\nAll of it: {self.request.log}",
            by_agent=recipe and self.request.agent.build.context is not None,
        )


@dataclass(frozen=True)
class ImageBuild:
    """An image to build.

    Attributes:
        plan: Its files.
        tag: Its name.
        arguments: Of the build.
        log: Where its output goes; makes the errors.
        secret: Whether the arguments hold a password, which may stay in no stage.
        limits: Of each step.
        sidecar: The container whose network the steps share; None: they have none.
    """

    plan: recipe.Recipe
    tag: str
    arguments: dict[str, str]
    log: BuildLog
    secret: bool
    limits: BuildLimits
    sidecar: str | None


class ImageEngine(Protocol):
    """What has images. An engine that builds nothing, of which no agent with a build is asked, may raise in `build`."""

    id: str
    """The name of the engine, in messages."""

    def find_image(self, name: str) -> Image | None:
        """Return an image by name or id; None if the engine does not have it."""

    def pull(self, name: str, log: BuildLog) -> None:
        """Fetch an image from its registry.

        Raises:
            BuildFailed: Time ran out.
            SandboxError: It can't be fetched; the message says why in a few words.
        """

    def build_image(self, build: ImageBuild) -> None:
        """Build an image within limits, its output going to the log; nothing but the base images are fetched.

        Raises:
            BuildFailed: A step failed, or time ran out.
        """

    def start_sidecar(self, made: Container) -> str:
        """Start a container that removes itself when it ends; its id."""

    def remove_sidecar(self, container: str) -> None:
        """End and remove it."""


def base_image(request: BuildRequest | None = None) -> str:
    """Return the name of the base image of agents without an image."""
    asked = request.base_image if request else None
    return asked or os.environ.get(BASE_VARIABLE) or DEFAULT_BASE


def base_finding(engine: str, image: Image | None) -> Finding:
    """Return what a check of an engine says of the base image, as the engine has it."""
    what, name = f"{engine} base image", base_image()
    if image is not None:
        return Finding(what, True, f"The base image {name} is there ({image.id[:19]}).")
    message = f"The base image {name} is not there; the first build fetches it."
    remedy = f"Without a registry, set {BASE_VARIABLE} to an image that is there; see docs/reference/sandboxes.md."
    return Finding(what, False, message, remedy)


def build(request: BuildRequest, engine: ImageEngine) -> Built:
    """Make the agent's image, or find it.

    Raises:
        BuildFailed: A step of the build failed, or took too long.
        SandboxError: The engine can't be reached, or a base image can't be had.
    """
    log, agent, asked = BuildLog(request), request.agent, request.agent.build
    if asked.image:
        hint = f"Load it with `{engine.id} load`, or fix `image` of the agent."
        image = _present(engine, log, asked.image, hint)
        tag = image.id
    else:
        plan = recipe.from_context(asked) if asked.context else recipe.generated(asked)
        base = None
        if BASE_ARGUMENT in plan.text:
            hint = (
                f"Name one that is there with --base-image or {BASE_VARIABLE}; an air-gapped site makes "
                "one of Debian packages (see docs/reference/sandboxes.md)."
            )
            base = _present(engine, log, base_image(request), hint)
        named = [_present(engine, log, name, "Fix it in the Dockerfile.") for name in plan.bases]
        identities = [image.id for image in (base, *named) if image is not None]
        repository = re.sub(r"[^a-z0-9]+", "-", agent.id.lower()).strip("-")
        tag = f"mleredux/{repository}:{plan.key(' '.join(identities))}"
        made = engine.find_image(tag)
        if made is None and (parts := layers.split(plan)):
            head, lines = parts
            key = head.key(f"{' '.join(identities)} {request.hosts}")
            below = _once(engine, log, head, f"mleredux/layers:{key}", base)
            note_use(engine.id, f"mleredux/layers:{key}")
            plan, base = layers.on_layers(plan, _reference(below), lines), None
        image = made or _once(engine, log, plan, tag, base)
        note_use(engine.id, tag)
    limit = asked.max_image_mb
    if limit is not None and image.size_mb > limit:
        raise AgentBroken(
            f"The image of agent {agent.id} has {image.size_mb:,} MB, its limit is {limit:,} MB.",
            hint="Install less in it, or begin with a smaller base.",
        )
    return _open_home(engine, log, image, tag)


def _once(engine: ImageEngine, log: BuildLog, plan: recipe.Recipe, tag: str, base: Image | None) -> Image:
    """The image of that tag, built if there is none, by one process at a time."""
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
        raise SandboxError(f"The engine built {tag} and does not have it.", hint="Is its disk full? Try again.")
    return image


def _make(engine: ImageEngine, log: BuildLog, plan: recipe.Recipe, tag: str, arguments: dict[str, str]) -> None:
    arguments = {**host.build_arguments(generated=plan.generated), **arguments}
    log.begin(arguments)
    secret = any(name.startswith("PIP_") and host.secrets({name: value}) for name, value in arguments.items())
    limits = build_limits(log.request.agent.build.max_image_mb)
    with way_out(engine, log, _with_python(engine, log, plan) if plan.network else None) as (sidecar, egress):
        arguments |= proxy_arguments() if sidecar else {}
        try:
            engine.build_image(ImageBuild(plan, tag, arguments, log, secret, limits, sidecar))
        except BuildFailed as error:
            error.by_agent = error.by_agent and not (egress and egress.unreachable)
            raise


def _with_python(engine: ImageEngine, log: BuildLog, plan: recipe.Recipe) -> Image | None:
    """An image for the container that gives a build its network."""
    for name in (base_image(log.request), *plan.bases):
        if image := engine.find_image(name):
            return image
    with suppress(SandboxError):
        return _present(engine, log, base_image(log.request), "")
    return None


def _with_certificates(engine: ImageEngine, log: BuildLog, base: Image) -> str:
    """The base image with the certificates that this machine trusts."""
    bundle = host.ca_bundle()
    if bundle is None:
        return base.id
    tag = f"mleredux/base:{base.id.removeprefix('sha256:')[:16]}-{host.ca_key(bundle)}"
    if not engine.find_image(tag):
        log.request.progress("adding this machine's certificates to the base image")
        _make(engine, log, recipe.on_top(_reference(base), host.CA_LAYER, {"ca.crt": bundle}), tag, {})
    return tag


def _open_home(engine: ImageEngine, log: BuildLog, image: Image, tag: str) -> Built:
    """An image made for MLE-bench with a home that its agent may write; any other unchanged."""
    if folder := image.agent_dir:
        if re.search(r"[^\w./-]", folder):
            raise SandboxError(f"The image's AGENT_DIR {folder!r} is not a plain path.", hint="Fix it in the image.")
        plan = recipe.on_top(_reference(image), _OPEN_HOME.format(folder=folder), generated=False)
        tag = f"mleredux/home:{plan.key(image.id)}"
        image = _once(engine, log, plan, tag, None)
        note_use(engine.id, tag)
    return Built(identity=image.id, reference=tag, cached=log.steps == 0)


def _reference(image: Image) -> str:
    """What `FROM` takes: a tag where there is one, since newer builders look for a bare id in a registry."""
    return image.tags[0] if image.tags else image.id


def _present(engine: ImageEngine, log: BuildLog, name: str, hint: str) -> Image:
    """An image that must be there, fetched from its registry if it is not."""
    if image := engine.find_image(name):
        return image
    log.steps += 1
    log.request.progress(f"fetching image {name}")
    try:
        engine.pull(name, log)
    except BuildFailed:
        raise
    except SandboxError as error:
        raise SandboxError(f"Image {name} is not there and can't be fetched ({error.message}).", hint=hint) from error
    image = engine.find_image(name)
    if image is None:
        raise SandboxError(f"Image {name} was fetched and is not there.", hint=hint)
    return image


@contextmanager
def _lock(name: str, log: BuildLog) -> Iterator[None]:
    """Held by whoever builds that image, on this machine."""
    folder = Path(tempfile.gettempdir()) / f"mleredux-{os.getuid()}-builds"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise SandboxError(f"{folder} belongs to another user.", hint="Set TMPDIR to your own folder.")
    plain = re.sub(r"[^\w.-]", "_", name)
    with (folder / f"{plain}.lock").open("w") as file:
        if not _locked(file):
            log.request.progress("waiting for the same image to be built by another process")
            while not _locked(file):
                log.request.check_cancelled()
                time.sleep(0.2)
        yield


def _locked(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
