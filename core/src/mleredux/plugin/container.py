"""For authors of container sandboxes with any engine: images, mounts, and the hardened profile.

An adapter finds, pulls and builds images (`ImageEngine`, used by `build`), and translates each `Container` that
`container` creates from a launch. No daemon is assumed; `docs/how-to/sandbox.md` explains the parts::

    from mleredux.plugin.container import Image

    image = Image.from_record({"Id": "sha256:1", "Config": {"Cmd": ["python3"]}})
    assert image.command == ("python3",)
"""

from __future__ import annotations

from mleredux._core.containers.building import BuildLimits
from mleredux._core.containers.container import (
    LAYOUT,
    OWN_PROCESSES,
    OWNER_LABEL,
    RUN_LABEL,
    Container,
    Image,
    container,
    exit_of,
    labels,
)
from mleredux._core.containers.disk import BuildDisk, build_disk
from mleredux._core.containers.dockerfile import filled, images_of, instructions
from mleredux._core.containers.downloads import PLACE as DOWNLOADS
from mleredux._core.containers.downloads import VARIABLE as DOWNLOADS_VARIABLE
from mleredux._core.containers.downloads import downloads, downloads_size
from mleredux._core.containers.folders import Bind, agent_user, prepare_folders, user_entries
from mleredux._core.containers.images import BASE_VARIABLE, BuildLog, ImageEngine, base_image, build
from mleredux._core.containers.recipe import Recipe
from mleredux._core.containers.withheld import FIND

__all__ = [
    "BASE_VARIABLE",
    "DOWNLOADS",
    "DOWNLOADS_VARIABLE",
    "FIND",
    "LAYOUT",
    "OWNER_LABEL",
    "OWN_PROCESSES",
    "RUN_LABEL",
    "Bind",
    "BuildDisk",
    "BuildLimits",
    "BuildLog",
    "Container",
    "Image",
    "ImageEngine",
    "Recipe",
    "agent_user",
    "base_image",
    "build",
    "build_disk",
    "container",
    "downloads",
    "downloads_size",
    "exit_of",
    "filled",
    "images_of",
    "instructions",
    "labels",
    "prepare_folders",
    "user_entries",
]
