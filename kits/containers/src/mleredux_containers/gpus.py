"""The devices and driver files of a run's GPUs, from the Container Device Interface (CDI) or else from the driver.

NVIDIA's toolkit writes a CDI specification of this machine's GPUs and MIG slices: the device nodes of each, by number
and UUID, and the driver's libraries. Without a specification, only whole GPUs are found, from the driver's table.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mleredux.errors import SandboxError

from mleredux_containers.folders import Bind

FOLDERS = (Path("/etc/cdi"), Path("/var/run/cdi"))
"""Folders where engines search for CDI specifications."""
DRIVER = Path("/proc/driver/nvidia/gpus")
"""The driver's table of GPUs."""
LIBRARIES = "/mleredux/driver"
"""The folder where `inside/entrypoint.sh` finds the driver's libraries in containers without the toolkit's hooks."""
NODES = Path("/dev")
_KIND = "nvidia.com/gpu"
_SHARED = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools")
_HINT = (
    "Write a specification: `nvidia-ctk cdi generate --device-name-strategy=index --device-name-strategy=uuid "
    "--output=/etc/cdi/nvidia.yaml`, again whenever GPUs or MIG slices change."
)


@dataclass(frozen=True)
class Gpus:
    """Devices and files that a container needs for its GPUs.

    Attributes:
        names: Their CDI names, for engines that support CDI themselves; empty without a specification.
        nodes: Device nodes, and their paths in the container.
        files: Files of the driver; libraries also under their usual names, in a folder where the loader finds them.
    """

    names: tuple[str, ...] = ()
    nodes: tuple[Bind, ...] = ()
    files: tuple[Bind, ...] = ()

    def binds(self) -> tuple[Bind, ...]:
        """Return mounts of devices and files.

        Raises:
            SandboxError: A device has a different path in containers, which mounts can't provide.
        """
        for node in self.nodes:
            if str(node.source.resolve()) != node.target:
                message = f"The device {node.source} can't be mounted at {node.target}."
                raise SandboxError(
                    message, hint="Name devices in the CDI specification by their paths on this machine."
                )
        return (*self.nodes, *self.files)


def find_gpus(ids: Sequence[str]) -> Gpus:
    """Return the devices of GPUs and MIG slices.

    Args:
        ids: Their UUIDs, or their numbers on this machine.

    Raises:
        SandboxError: A GPU is unknown here, or its device does not exist.
    """
    if not ids:
        return Gpus()
    specifications = [found for found in _specifications() if found.get("kind") == _KIND]
    edits = [found.get("containerEdits") or {} for found in specifications]
    listed = {str(device["name"]): device for found in specifications for device in found.get("devices") or ()}
    whole = {} if set(ids) <= listed.keys() else _driver()
    for name in ids:
        if name not in listed and name not in whole:
            where = f"the CDI specification in {FOLDERS[0]}" if listed else "a CDI specification, which is missing,"
            what = "MIG slice" if name.startswith("MIG") else "GPU"
            driver = "the driver" if DRIVER.exists() else "the driver, which is not loaded"
            raise SandboxError(f"{what} {name} is not known to {where} or {driver}.", hint=_HINT)
    if set(ids) <= listed.keys():
        edits += [listed[name].get("containerEdits") or {} for name in ids]
        described = [node for edit in edits for node in edit.get("deviceNodes") or ()]
        nodes = [Bind(Path(node.get("hostPath") or node["path"]), node["path"], writable=True) for node in described]
        mounts = [mount for edit in edits for mount in edit.get("mounts") or ()]
        files = [Bind(Path(mount["hostPath"]), mount["containerPath"]) for mount in mounts]
        files += [
            Bind(file.source, f"{LIBRARIES}/{name}")
            for file in files
            if (library := re.fullmatch(r"(lib.+\.so)\.[\d.]+", file.source.name))
            for name in dict.fromkeys((file.source.name, f"{library[1]}.1"))
        ]
        names = tuple(f"{_KIND}={name}" for name in ids)
    elif set(ids) <= whole.keys():
        paths = [*(whole[name] for name in ids), *(path for name in _SHARED if (path := NODES / name).exists())]
        nodes = [Bind(path, f"/dev/{path.name}", writable=True) for path in paths]
        files, names = [], ()
    else:
        raise SandboxError(f"Only some of the GPUs {', '.join(ids)} are in the CDI specification.", hint=_HINT)
    for node in nodes:
        if not node.source.exists() or not stat.S_ISCHR(node.source.stat().st_mode):
            raise SandboxError(
                f"The device {node.source} of GPU {', '.join(ids)} no longer exists.", hint="`nvidia-smi` shows why."
            )
    return Gpus(names, tuple(dict.fromkeys(nodes)), tuple(files))


def _specifications() -> Iterator[dict[str, Any]]:
    import yaml

    for path in sorted(path for folder in FOLDERS for path in folder.glob("*") if path.suffix in (".json", ".yaml")):
        try:
            content = yaml.safe_load(path.read_text(encoding="utf-8"))  # JSON is YAML
        except (OSError, ValueError, yaml.YAMLError) as error:
            raise SandboxError(f"The CDI specification {path} can't be read.", hint=_HINT) from error
        if isinstance(content, dict):
            yield content


def _driver() -> dict[str, Path]:
    """Return the device node of each GPU, by UUID and by minor number."""
    found = {}
    for path in sorted(DRIVER.glob("*/information")):
        fields = dict(line.partition(":")[::2] for line in path.read_text().splitlines())
        minor = fields.get("Device Minor", "").strip()
        if minor.isdigit():
            found[minor] = found[fields.get("GPU UUID", "").strip()] = NODES / f"nvidia{minor}"
    return found
