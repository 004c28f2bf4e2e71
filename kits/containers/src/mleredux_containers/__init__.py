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
| `folders` | folders mounted according to the container contract, and known files that are hidden in them |
| `gpus` | devices and driver files of GPUs and MIG slices, from CDI or the driver |
| `gpu_check` | which GPUs an agent would see in each sandbox |
| `profile` | a launch as a hardened container |
| `inside` | programs that run in the container |

::

    from mleredux_containers import Image

    image = Image.from_record({"Id": "sha256:1", "Config": {"Cmd": ["python3"]}})
    assert image.command == ("python3",)
"""

from __future__ import annotations

from mleredux_containers.building import BuildLimits as BuildLimits
from mleredux_containers.disk import BuildDisk as BuildDisk
from mleredux_containers.disk import build_disk as build_disk
from mleredux_containers.dockerfile import filled as filled
from mleredux_containers.dockerfile import images_of as images_of
from mleredux_containers.dockerfile import instructions as instructions
from mleredux_containers.dockerfile import listed as listed
from mleredux_containers.download_cache import DOWNLOADS as DOWNLOADS
from mleredux_containers.download_cache import DOWNLOADS_VARIABLE as DOWNLOADS_VARIABLE
from mleredux_containers.download_cache import downloads as downloads
from mleredux_containers.download_cache import downloads_size as downloads_size
from mleredux_containers.egress import FiltersHosts as FiltersHosts
from mleredux_containers.folders import FIND as FIND
from mleredux_containers.folders import Bind as Bind
from mleredux_containers.folders import agent_user as agent_user
from mleredux_containers.folders import prepare_folders as prepare_folders
from mleredux_containers.folders import user_entries as user_entries
from mleredux_containers.gpus import LIBRARIES as LIBRARIES
from mleredux_containers.gpus import Gpus as Gpus
from mleredux_containers.gpus import find_gpus as find_gpus
from mleredux_containers.images import BASE_VARIABLE as BASE_VARIABLE
from mleredux_containers.images import BuildLog as BuildLog
from mleredux_containers.images import ImageBuild as ImageBuild
from mleredux_containers.images import ImageEngine as ImageEngine
from mleredux_containers.images import base_finding as base_finding
from mleredux_containers.images import base_image as base_image
from mleredux_containers.images import build as build
from mleredux_containers.profile import CAPABILITIES as CAPABILITIES
from mleredux_containers.profile import LAYOUT as LAYOUT
from mleredux_containers.profile import OWN_PROCESSES as OWN_PROCESSES
from mleredux_containers.profile import OWNER_LABEL as OWNER_LABEL
from mleredux_containers.profile import RUN_LABEL as RUN_LABEL
from mleredux_containers.profile import Container as Container
from mleredux_containers.profile import Image as Image
from mleredux_containers.profile import container as container
from mleredux_containers.profile import exit_of as exit_of
from mleredux_containers.profile import labels as labels
from mleredux_containers.recipe import Recipe as Recipe
from mleredux_containers.watch import Watch as Watch
