"""Execute a Dockerfile's instructions: each changes a folder of files, or the image's settings."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from mleredux.errors import AgentBroken, SandboxError
from mleredux.plugin.files import remove_tree
from mleredux_containers import BuildLog, Recipe, filled, instructions, listed

from mleredux_sandbox_apptainer.engine import ROOT, find_image, source_of, write_record
from mleredux_sandbox_apptainer.steps import Steps

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_CHANGES_NOTHING = {"LABEL", "USER", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "MAINTAINER"}
_FLAG = re.compile(r"--([a-z]+)(?:=(\S*))?\s+")
# Like Docker: copy a folder's content, a file to a new name, or several files into a folder.
_COPY = """\
target=$1; shift; cd /mleredux/from || exit
for source in "$@"; do
    source=${source#/}
    if [ -d "./$source" ]; then mkdir -p "$target" && cp -RP "./$source/." "$target/"
    elif [ "${target%/}" != "$target" ] || [ -d "$target" ]; then mkdir -p "$target" && cp -P "./$source" "$target"
    else mkdir -p "$(dirname "$target")" && cp -P "./$source" "$target"
    fi || exit
done
"""


class Builder:
    """Builds one recipe.

    Args:
        plan: The recipe.
        arguments: Build arguments.
        log: The log of the build.
        steps: Executes RUN instructions.
        folder: A folder for the files of its stages and its context.
    """

    def __init__(self, plan: Recipe, arguments: dict[str, str], log: BuildLog, steps: Steps, folder: Path) -> None:
        self._plan, self._arguments, self._log, self._steps, self._folder = plan, arguments, log, steps, folder
        self._context, self._root = folder / "context", folder
        self._stages: dict[str, Path] = {}
        self._declared: dict[str, str] = {}  # set by ARG instructions
        self._variables: dict[str, str] = {}
        self._place = "/"
        self._entrypoint: list[str] = []
        self._command: list[str] = []
        self._volumes: list[str] = []

    def build(self) -> None:
        """Build the files of the last stage, and the image's record.

        Raises:
            AgentBroken: The Dockerfile has an instruction that can't be built here.
            BuildFailed: A step failed.
        """
        self._context.mkdir()
        self._plan.write_folder(self._context)
        steps = list(instructions(self._plan.text))
        for number, (word, arguments) in enumerate(steps, 1):
            self._log.write(f"Step {number}/{len(steps)} : {word} {arguments}")
            method = getattr(self, f"_do_{word.lower()}", None)
            if method is not None:
                method(arguments)
            elif word not in _CHANGES_NOTHING:
                raise _refused(f"{word} {arguments}")
        self._root.rename(self._folder / ROOT)
        for left in {self._context, *self._stages.values()} - {self._root}:
            remove_tree(left)
        write_record(self._folder, self._variables, [*self._entrypoint, *self._command], self._volumes)

    def _do_from(self, arguments: str) -> None:
        words = [word for word in arguments.split() if not word.startswith("--")]
        name = filled(words[0], self._declared) or self._arguments["BASE_IMAGE"]
        base, image = self._stages.get(name.lower()), find_image(name)
        if base is None:
            if image is None:
                raise SandboxError(f"Image {name} is not available.", hint="See docs/reference/sandboxes.md.")
            base = source_of(image)
            self._variables, self._entrypoint, self._command = {"PATH": _PATH, **image.env}, [], [*image.command]
        self._root = self._folder / f"stage-{len(self._stages)}"
        copy = ["cp", "-RP", "--preserve=mode,timestamps,links", "--reflink=auto", str(base), str(self._root)]
        unpack = ["apptainer", "--silent", "build", "--fix-perms", "--sandbox", str(self._root), str(base)]
        self._check(self._steps.run(copy if base.is_dir() else unpack, {})[0])
        self._steps.prepare(self._root)
        for alias in (str(len(self._stages)), *(words[2:3])):
            self._stages[alias.lower()] = self._root
        self._declared, self._place = {}, "/"

    def _do_arg(self, arguments: str) -> None:
        for name, equals, default in (word.partition("=") for word in _words(arguments)):
            value = self._arguments.get(name, self._filled(default) if equals else None)
            if value is not None:
                self._declared[name] = value

    def _do_env(self, arguments: str) -> None:
        words = _words(arguments)
        pairs = words if "=" in words[0] else [f"{words[0]}={arguments.split(None, 1)[1]}"]
        self._variables |= {name: self._filled(value) for name, _, value in (pair.partition("=") for pair in pairs)}

    def _do_workdir(self, arguments: str) -> None:
        self._place = str(Path(self._place, self._filled(arguments.strip())))

    def _do_run(self, arguments: str) -> None:
        flags, arguments = _flags(arguments)
        if any(not value.startswith(("type=cache", "type=tmpfs")) for value in flags.values()):
            raise _refused(f"RUN {arguments}")
        proxies = {name: value for name, value in self._arguments.items() if name.lower().endswith("_proxy")}
        self._step(listed(arguments) or ["/bin/sh", "-c", arguments], {**proxies, **self._declared})

    def _do_copy(self, arguments: str) -> None:
        flags, arguments = _flags(arguments)
        *sources, target = [self._filled(word) for word in listed(arguments) or arguments.split()]
        shown = self._context
        if "from" in flags:
            stage, image = self._stages.get(flags["from"].lower()), find_image(flags["from"])
            if stage is None and image is not None and image.layers:
                stage = image.layers[0]
            if stage is None:
                raise _refused(f"COPY --from={flags['from']}")
            shown = stage
        # The shell expands patterns in the mounted folder.
        names = " ".join(re.sub(r"[^\w./*?\[\]-]", r"\\\g<0>", source) for source in sources)
        where = f"{Path(self._place, target)}{'/' if target.endswith('/') else ''}"
        expand = f'cd /mleredux/from && exec /bin/sh -c {shlex.quote(_COPY)} sh "$0" {names}'
        self._step(["/bin/sh", "-c", expand, where], {}, shown)

    def _do_add(self, arguments: str) -> None:
        if re.search(r"\.(tar|tgz|tbz2?|txz|gz|bz2|xz|zst)\b", arguments):
            raise _refused(f"ADD {arguments}")  # which would unpack it
        self._do_copy(arguments)

    def _do_entrypoint(self, arguments: str) -> None:
        self._entrypoint, self._command = listed(arguments) or ["/bin/sh", "-c", arguments], []

    def _do_cmd(self, arguments: str) -> None:
        self._command = listed(arguments) or ["/bin/sh", "-c", arguments]

    def _do_volume(self, arguments: str) -> None:
        self._volumes += listed(arguments) or arguments.split()

    def _step(self, command: Sequence[str], variables: dict[str, str], shown: Path | None = None) -> None:
        known = {**variables, **self._variables}
        self._check(self._steps.step(self._root, command, known, self._place, shown))

    def _check(self, code: int) -> None:
        if code:
            raise self._log.failed()

    def _filled(self, text: str) -> str:
        return filled(text, {**self._declared, **self._variables}) or ""


def _flags(remainder: str) -> tuple[dict[str, str], str]:
    flags = {}
    while match := _FLAG.match(remainder):
        flags[match[1]], remainder = match[2] or "", remainder[match.end() :]
    return flags, remainder


def _words(arguments: str) -> list[str]:
    try:
        return shlex.split(arguments)
    except ValueError:
        raise _refused(arguments) from None


def _refused(instruction: str) -> AgentBroken:
    return AgentBroken(
        f"The Dockerfile has `{instruction[:200]}`, which the sandbox apptainer can't build.",
        hint="Build the image with Docker or Podman, save it, and set it in the agent's build: "
        '`image = "docker-archive:/path/image.tar"`.',
    )
