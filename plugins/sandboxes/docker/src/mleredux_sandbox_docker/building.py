"""Find, fetch and build images of the Docker engine within limits."""

from __future__ import annotations

import dataclasses
import re
import shlex
import tempfile
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mleredux.errors import AgentBroken, BuildFailed, SandboxError
from mleredux.models.formats import plain
from mleredux_containers import (
    BuildLog,
    Container,
    Image,
    ImageBuild,
    Watch,
    build_disk,
    filled,
    instructions,
)

from mleredux_sandbox_docker.container import settings
from mleredux_sandbox_docker.engine import connect, find_image, find_record, ignore_missing, reason
from mleredux_sandbox_docker.steps import STEP_LABEL, Bounds, run_step, sweep_steps

if TYPE_CHECKING:
    from docker import APIClient

_STEP = re.compile(r"Step (\d+)/\d+ : (.*)", re.DOTALL)
_COMMIT_SECONDS = 1800


class DockerImages:
    """Implements `mleredux_containers.ImageEngine` for a client's engine."""

    id = "docker"

    def __init__(self, client: APIClient) -> None:
        self._client = client

    def find_image(self, name: str) -> Image | None:
        """Return an image of the engine, or None."""
        return find_image(self._client, name)

    def pull(self, name: str, log: BuildLog) -> None:
        """Fetch an image from its registry."""
        import docker
        import requests
        from docker.utils import parse_repository_tag

        repository, tag = parse_repository_tag(name)
        seen: set[str] = set()
        try:
            for line in self._client.pull(repository, tag=tag or "latest", stream=True, decode=True):
                if "error" in line:
                    raise SandboxError(str(line["error"]))
                status = f"{line.get('id', '')} {line.get('status', '')}".strip()
                if status not in seen:
                    seen.add(status)
                    log.write(status)
                if log.seconds_left <= 0.1:
                    log.request.check_cancelled()
                    raise BuildFailed(f"Image {name} was not fetched within {plain(log.request.time_limit)} s.")
        except (docker.errors.DockerException, requests.RequestException) as error:
            raise SandboxError(reason(error)) from error

    def start_sidecar(self, spec: Container) -> str:
        """Start a container that is removed automatically when it ends."""
        arguments = settings(spec)
        arguments["host_config"]["auto_remove"] = True
        arguments["host_config"] = self._client.create_host_config(**arguments["host_config"])
        created = str(self._client.create_container(**arguments)["Id"])
        self._client.start(created)
        return created

    def remove_sidecar(self, container: str) -> None:
        """Stop and remove a container."""
        with ignore_missing():
            self._client.remove_container(container, force=True)

    def build_image(self, build: ImageBuild) -> None:
        """Build an image; stop at its time limit, or when a step writes too much."""
        client = connect(_cancellable())
        client.timeout = _COMMIT_SECONDS
        sweep_steps(client)
        watch = Watch(build.log, build.limits.disk)
        watch.start()
        try:
            with build_disk(build.limits.disk) as disk:
                network = f"container:{build.sidecar}" if build.sidecar else "none"
                _Builder(client, build, Bounds(build.log, watch, build.limits, network, disk)).build(build.tag)
        finally:
            watch.ended.set()
            client.close()
        if build.secret:  # the installing stage remains in the engine; its history may contain the password of an index
            self._client.prune_images(  # type: ignore[no-untyped-call]
                filters={"label": "mleredux.stage=install", "dangling": True}
            )


class _Builder:
    """Builds a Dockerfile: each RUN in a limited container, everything else with the engine's builder."""

    def __init__(self, client: APIClient, build: ImageBuild, bounds: Bounds) -> None:
        self._client, self._bounds, self._log, self._watch = client, bounds, bounds.log, bounds.watch
        self._plan, self._arguments = build.plan, build.arguments
        self._instructions = list(instructions(build.plan.text))
        self._before: list[str] = []  # the first FROM, and finished stages
        self._globals: dict[str, str] = {}
        self._from, self._stage, self._image = "", "", ""  # of the current stage
        self._declared: list[str] = []  # its ARG instructions
        self._values: dict[str, str] = {}
        self._pending: list[tuple[int, str]] = []

    def build(self, tag: str) -> None:
        """Build all stages."""
        for number, (word, rest) in enumerate(self._instructions, 1):
            if word == "FROM":
                self._begin(number, rest)
            elif not self._from:
                self._before.append(f"{word} {rest}")
                self._globals |= self._argument_values(rest, {}) if word == "ARG" else {}
            elif word == "RUN" and not rest.startswith("--"):
                self._flush()
                self._log.write(f"Step {number}/{len(self._instructions)} : RUN {rest}")
                proxies = {name: value for name, value in self._arguments.items() if name.lower().endswith("_proxy")}
                values, shared = {**proxies, **self._values}, rest in self._plan.shared
                self._image = run_step(self._client, self._image, rest, values, self._bounds, shared=shared)
            else:
                self._pending.append((number, f"{word} {rest}"))
                if word == "ARG":
                    self._declared.append(f"{word} {rest}")
                    self._values |= self._argument_values(rest, {**self._globals, **self._values})
                elif word == "COPY" and "--from" in rest:  # the files of other stages may be large: check after each
                    self._flush()
        self._flush(tag)

    def _begin(self, number: int, rest: str) -> None:
        if self._from:
            self._flush()
            self._before.append(self._again())
        self._check_base(rest)
        self._from, self._image, self._declared, self._values = f"FROM {rest}", "", [], {}
        words = rest.split()
        self._stage = f" AS {words[-1]}" if len(words) > 2 and words[-2].upper() == "AS" else ""
        self._pending = [(number, self._from)]

    def _check_base(self, rest: str) -> None:
        """Check that a base image has no ONBUILD instructions, which the engine's builder would run."""
        name = filled(next(word for word in rest.split() if not word.startswith("--")), self._globals)
        image = find_record(self._client, name or self._arguments.get("BASE_IMAGE", ""))
        if image and (image["Config"] or {}).get("OnBuild"):
            raise AgentBroken(
                f"The image {name} has ONBUILD instructions, which builds can't run.", hint="Use another base image."
            )

    def _again(self) -> str:
        return f"FROM {self._image}{self._stage}"

    def _argument_values(self, rest: str, known: dict[str, str]) -> dict[str, str]:
        """Return the values that an ARG instruction sets."""
        try:
            words = shlex.split(rest)
        except ValueError:
            return {}  # the engine's builder reports this
        arguments = {}
        for name, equals, default in (word.partition("=") for word in words):
            value = filled(default, known) if equals else known.get(name)
            if (value := self._arguments.get(name, value)) is not None:
                arguments[name] = value
        return arguments

    def _flush(self, tag: str | None = None) -> None:
        """Build the instructions before this one with the engine's builder: they execute nothing."""
        if self._image and not self._pending and tag is None:
            return
        lines = [text for _, text in self._pending]
        head = [*self._before, *([self._again(), *self._declared] if self._image else [])]
        self._check_added(lines)
        files = {**self._plan.files, self._plan.dockerfile: "".join(f"{line}\n" for line in [*head, *lines]).encode()}
        with tempfile.TemporaryFile() as context:
            dataclasses.replace(self._plan, files=files).write_tar(context)
            context.seek(0)
            stream = self._client.build(
                fileobj=context,
                custom_context=True,
                dockerfile=self._plan.dockerfile,
                tag=tag,
                buildargs=self._arguments,
                # A step's label would be inherited by images based on it.
                labels={STEP_LABEL: "", **({"mleredux.image": tag} if tag else {})},
                network_mode="none",
                rm=True,
                forcerm=True,
                decode=True,
            )
            self._watch.stop = stream.close
            try:
                self._image = self._follow(stream, len(head))
            finally:
                self._watch.stop = lambda: None
                stream.close()  # if another error stopped us, this stops the engine's build, too
        self._pending = []
        image = self._client.inspect_image(self._image)  # type: ignore[no-untyped-call]
        if image["Size"] > self._bounds.limits.disk:
            raise self._log.too_large(self._bounds.limits.disk)

    def _check_added(self, lines: list[str]) -> None:
        """Check the size of copied and unpacked files, which the engine writes to its own disk."""
        limit = self._bounds.limits.disk
        adding = [line for line in lines if line.startswith(("ADD ", "COPY "))]
        if (
            adding
            and self._plan.size(limit, unpacked=any(line.startswith("ADD ") for line in adding)) * len(adding) > limit
        ):
            raise self._log.too_large(limit)

    def _follow(self, stream: Iterable[dict[str, Any]], head: int) -> str:
        image = ""
        for message in stream:
            text = str(message.get("stream") or message.get("error") or message.get("status") or "")
            if step := _STEP.fullmatch(text.strip()):
                place = int(step[1]) - head
                if not 1 <= place <= len(self._pending):
                    continue
                text = f"Step {self._pending[place - 1][0]}/{len(self._instructions)} : {step[2]}"
            self._log.write(text)
            image = str((message.get("aux") or {}).get("ID") or image)
            if "error" in message:
                raise self._log.failed()
        self._watch.check()
        if not image:
            raise self._log.broken_off()
        return image


def _cancellable() -> type[APIClient]:
    """Return a client class whose builds can be cancelled, unlike those of docker's own client."""
    from docker import APIClient
    from docker.types import CancellableStream

    class Cancellable(APIClient):
        def _stream_helper(self, response: Any, decode: bool = False) -> Any:
            plain = super()._stream_helper(response, decode)  # type: ignore[misc]
            return CancellableStream(plain, response) if decode else plain

    return Cancellable
