"""Utilities for authors of container sandboxes with any engine: images, mounts, and the hardened profile.

An adapter finds, pulls and builds images (`ImageEngine`, used by `build`), and translates each `Container`, which
`container` creates from a launch. No daemon is required.

| module | content |
|---|---|
| `recipe` | files and Dockerfile of an image, from an agent's build |
| `dockerfile`, `ignore` | parsers for Dockerfiles and `.dockerignore` |
| `layers` | layers that images of one repository share |
| `images` | finding, pulling and building images, with locks and logs |
| `host` | the engine's host: registries, mirrors, users |
| `egress` | the proxy through which containers reach allowed hosts |
| `building`, `disk`, `download_cache`, `watch` | limits, disk and network of builds, and their download cache |
| `folders`, `withheld` | folders mounted according to the container contract, and known files that are hidden in them |
| `gpus` | devices and driver files of GPUs and MIG slices, from CDI or the driver |
| `profile` | a launch as a hardened container |
| `inside` | programs that run in the container |

::

    from mleredux_containers import Image

    image = Image.from_record({"Id": "sha256:1", "Config": {"Cmd": ["python3"]}})
    assert image.command == ("python3",)
"""

from __future__ import annotations

from mleredux_containers.building import BuildLimits
from mleredux_containers.disk import BuildDisk, build_disk
from mleredux_containers.dockerfile import filled, images_of, instructions
from mleredux_containers.download_cache import PLACE as DOWNLOADS
from mleredux_containers.download_cache import VARIABLE as DOWNLOADS_VARIABLE
from mleredux_containers.download_cache import downloads, downloads_size
from mleredux_containers.egress import FiltersHosts
from mleredux_containers.folders import Bind, agent_user, prepare_folders, user_entries
from mleredux_containers.gpus import LIBRARIES, Gpus, find_gpus
from mleredux_containers.images import BASE_VARIABLE, BuildLog, ImageBuild, ImageEngine, base_finding, base_image, build
from mleredux_containers.profile import (
    CAPABILITIES,
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
from mleredux_containers.recipe import Recipe
from mleredux_containers.watch import Watch
from mleredux_containers.withheld import FIND

__all__ = [
    "BASE_VARIABLE",
    "CAPABILITIES",
    "DOWNLOADS",
    "DOWNLOADS_VARIABLE",
    "FIND",
    "LAYOUT",
    "LIBRARIES",
    "OWNER_LABEL",
    "OWN_PROCESSES",
    "RUN_LABEL",
    "Bind",
    "BuildDisk",
    "BuildLimits",
    "BuildLog",
    "Container",
    "FiltersHosts",
    "Gpus",
    "Image",
    "ImageBuild",
    "ImageEngine",
    "Recipe",
    "Watch",
    "agent_user",
    "base_finding",
    "base_image",
    "build",
    "build_disk",
    "container",
    "downloads",
    "downloads_size",
    "exit_of",
    "filled",
    "find_gpus",
    "images_of",
    "instructions",
    "labels",
    "prepare_folders",
    "user_entries",
]
