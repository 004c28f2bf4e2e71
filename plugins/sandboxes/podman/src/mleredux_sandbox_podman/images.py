"""Find, fetch and build Podman images within limits."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import tempfile
from pathlib import Path

from mleredux.errors import SandboxError
from mleredux.plugin.files import plain_path
from mleredux_containers import BuildLog, Container, Image, ImageBuild, Watch, build_disk

from mleredux_sandbox_podman.control_group import limited_group
from mleredux_sandbox_podman.engine import (
    call,
    command,
    failure,
    filtered,
    find_image,
    reason,
    remove,
    run_options,
    state_of,
    store_on,
)
from mleredux_sandbox_podman.steps import Steps, end_steps

_PERIOD = 100_000
_MOVE_SECONDS = 1800


class PodmanImages:
    """Implements `mleredux_containers.ImageEngine`."""

    id = "podman"

    def find_image(self, name: str) -> Image | None:
        """Return an existing image, or None."""
        return find_image(name)

    def pull(self, name: str, log: BuildLog) -> None:
        """Fetch an image; names without a registry refer to Docker Hub."""
        first, _, remainder = name.partition("/")
        if not remainder or not ("." in first or ":" in first or first == "localhost"):
            name = f"docker.io/{name}" if remainder else f"docker.io/library/{name}"
        code, output = _follow(["pull", name], Watch(log), log, {})
        if code:
            raise SandboxError(reason(output))

    def start_sidecar(self, spec: Container) -> str:
        """Start a container that is removed automatically when it ends."""
        with tempfile.TemporaryDirectory(prefix="mleredux-build-") as folder:
            options = run_options(spec, Path(folder, "id"), Path(folder, "env"), log="none")
            call("The container of a build's network can't be started", options[0], "--rm", *options[1:])
            return Path(folder, "id").read_text().strip()

    def remove_sidecar(self, container: str) -> None:
        """Stop and remove a container."""
        remove(container)

    def build_image(self, build: ImageBuild) -> None:
        """Build an image; stop at its time limit, or when a step writes too much."""
        plan, limits, log = build.plan, build.limits, build.log
        with contextlib.ExitStack() as stack:
            # Generated builds, and those that execute nothing, are built on the layers of podman's default store.
            bounded = plan.runs and not plan.generated
            disk = stack.enter_context(build_disk(limits.disk)) if bounded else None
            if not plan.runs and plan.size(limits.disk, unpacked=True) * plan.text.count("\n") > limits.disk:
                raise log.too_large(limits.disk)
            network = f"ns:/proc/{state_of(build.sidecar)['Pid']}/ns/net" if build.sidecar else "none"
            group = stack.enter_context(limited_group(limits.processes))
            own = store_on(disk.path) if disk else []
            disk = disk if own else None
            temporary = str(disk.path) if disk else tempfile.gettempdir()
            context = stack.enter_context(tempfile.TemporaryDirectory(prefix="context-", dir=temporary))
            folder = plain_path(Path(context))
            plan.write_folder(folder)
            aside = stack.enter_context(tempfile.TemporaryDirectory(prefix="filter-"))
            options = [
                *own,
                *(["--cgroup-manager=cgroupfs"] if group else []),
                "build",
                "--format=docker",
                "--force-rm",
                f"--layers={str(not build.secret).lower()}",  # a layer's history may contain the password of an index
                f"--tag={build.tag}",
                f"--label=mleredux.image={build.tag}",
                f"--file={folder / plan.dockerfile}",
                *(f"--build-arg={name}" for name in build.arguments),  # the values come from the environment
                "--http-proxy=false",  # the user's proxies may contain a password
                "--pull=never",
                f"--memory={limits.memory}b",
                f"--memory-swap={limits.memory}b",
                f"--cpu-period={_PERIOD}",
                f"--cpu-quota={int(limits.cpus * _PERIOD)}",
                *group,
                f"--network={network}",
                *filtered(Path(aside, "seccomp.json")),
            ]
            watch, variables = Watch(log, limits.disk), {**build.arguments, "TMPDIR": temporary}
            steps = Steps(watch, None if group else limits.processes, measured=disk is None)
            code, output = _follow([*options, str(folder)], watch, log, variables, steps)
            if code and disk and "no space left on device" in output.lower():
                raise log.too_large(limits.disk)
            if code:
                if "rlimit" in output or "OCI runtime" in output:
                    raise failure("The image can't be built", reason(output))
                raise log.failed()
            if disk:
                _keep(own, build.tag)


def _keep(store: list[str], tag: str) -> None:
    """Copy an image from a separate store to podman's default store."""
    problem = "The image that was built can't be stored"
    with tempfile.TemporaryDirectory(prefix="mleredux-image-", dir="/var/tmp") as folder:
        call(problem, *store, "push", "--quiet", tag, f"dir:{folder}", seconds=_MOVE_SECONDS)
        stored = call(problem, "pull", "--quiet", f"dir:{folder}", seconds=_MOVE_SECONDS) or ""
    call(problem, "tag", stored.strip(), tag)


def _follow(
    arguments: list[str], watch: Watch, log: BuildLog, variables: dict[str, str], steps: Steps | None = None
) -> tuple[int, str]:
    """Run podman until it ends or reaches a limit, with its output in the log; return its exit code and last output."""
    try:
        process = subprocess.Popen(
            command(*arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env={**os.environ, **variables},
            start_new_session=True,
        )
    except OSError as error:
        raise SandboxError("The program podman is not installed.", hint="Install it: `apt install podman`.") from error
    assert process.stdout is not None

    def stop() -> None:
        end_steps(process.pid)  # podman then removes its unfinished build and ends
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)

    watch.stop = stop
    if steps is not None:
        steps.watch(process.pid)
    watch.start()
    output = ""
    try:
        for line in process.stdout:
            log.write(re.sub(r"^(\[\d+/\d+\] )?STEP", "Step", line))
            output = (output + line)[-4000:]
        code = process.wait()
    except BaseException:
        stop()
        raise
    finally:
        watch.ended.set()
        process.stdout.close()
    watch.check()
    return code, output
