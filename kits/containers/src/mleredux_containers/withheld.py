"""Hide files of an image that contain a task's known answers: an unreadable file is mounted over each of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from mleredux._core.known_files import KnownFiles, tree_files
from mleredux.plugin.sandbox import Launch

from mleredux_containers.folders import Bind

FIND = ("/bin/sh", "-c", "command -v find >/dev/null || exit 127; find / -xdev -type f 2>/dev/null; exit 0")
"""The command that lists an image's files from inside a container."""
_found: dict[tuple[str, tuple[str, ...]], list[str]] = {}


def withheld_binds(launch: Launch, image: str, layers: Sequence[Path], listed: Callable[[], str]) -> Iterator[Bind]:
    """Yield mounts that hide the files of an image that contain known answers of a launch's task.

    Args:
        launch: The launch of the agent.
        image: The image's id.
        layers: The engine's folders of its layers, the uppermost first.
        listed: Returns the output of `FIND` in the image, if the engine does not show its layers here.
    """
    if not launch.known_answers:
        return
    empty = (launch.staging_dir or launch.control_dir) / "withheld"
    empty.touch()
    empty.chmod(0)
    key = image, launch.known_answers
    if key not in _found:
        shown = {path for layer in _shown(layers) for path in tree_files(layer)}
        _found[key] = KnownFiles(launch.known_answers).within(shown or listed().splitlines())
    for path in _found[key]:
        yield Bind(empty, path)


def _shown(layers: Sequence[Path]) -> Sequence[Path]:
    """Return the layers if all of them can be read here, else nothing."""
    return layers if all(os.access(layer, os.R_OK | os.X_OK) for layer in layers) else []
