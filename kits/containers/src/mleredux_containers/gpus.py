"""The devices and driver files of a run's GPUs, from the Container Device Interface (CDI) or else from the driver.

NVIDIA's toolkit writes a CDI specification of this machine's GPUs and MIG slices: the device nodes of each, by number
and UUID, and the driver's libraries. Without a specification, only whole GPUs are found, from the driver's table.
"""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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
    "--output=/etc/cdi/nvidia.yaml`, and again whenever GPUs or MIG slices change."
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
                    message, hint="Identify devices in the CDI specification by their paths on this machine."
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
    listed = _specified(ids)
    devices = listed if set(ids) <= listed.keys() else _driver()
    for name in sorted((name for name in ids if name not in devices), key=listed.__contains__):
        if name in listed:
            raise SandboxError(f"Only some of the GPUs {', '.join(ids)} are in the CDI specification.", hint=_HINT)
        where = f"the CDI specification in {FOLDERS[0]}" if listed else "a CDI specification, which is missing,"
        kind = "MIG slice" if name.startswith("MIG") else "GPU"
        driver = "the driver" if DRIVER.exists() else "the driver, which is not loaded"
        raise SandboxError(f"{kind} {name} is not known to {where} or {driver}.", hint=_HINT)
    nodes, files = ([bind for name in ids for bind in devices[name][part]] for part in (0, 1))
    for bind in (*nodes, *files):
        if not bind.source.exists() or (bind.writable and not stat.S_ISCHR(bind.source.stat().st_mode)):
            part = f"device {bind.source} of GPU {', '.join(ids)}" if bind.writable else f"driver's file {bind.source}"
            raise SandboxError(f"The {part} no longer exists.", hint=f"`nvidia-smi` shows why. {_HINT}")
    names = tuple(f"{_KIND}={name}" for name in ids) if devices is listed else ()
    return Gpus(names, tuple(dict.fromkeys(nodes)), tuple(dict.fromkeys(files)))


def _specified(ids: Sequence[str]) -> dict[str, tuple[list[Bind], list[Bind]]]:
    """Return the device nodes and the driver's files of each device, by name; later folders take precedence.

    Raises:
        SandboxError: A specification can't be read, and the others lack one of the GPUs.
    """
    import yaml

    devices: dict[str, tuple[list[Bind], list[Bind]]] = {}
    unreadable: tuple[Path, Exception] | None = None
    for path in (path for folder in FOLDERS for path in sorted(folder.glob("*")) if path.suffix in (".json", ".yaml")):
        try:
            parse = json.loads if path.suffix == ".json" else yaml.safe_load  # YAML allows no tabs
            content, of_file = parse(path.read_text(encoding="utf-8")) or {}, {}
            for device in (content.get("kind") == _KIND and content.get("devices")) or ():
                edits = [edit for part in (content, device) if (edit := part.get("containerEdits"))]
                nodes = [node for edit in edits for node in edit.get("deviceNodes") or ()]
                mounts = [mount for edit in edits for mount in edit.get("mounts") or ()]
                files = [Bind(Path(mount["hostPath"]), mount["containerPath"]) for mount in mounts]
                files += [
                    Bind(file.source, f"{LIBRARIES}/{name}")
                    for file in files
                    if (library := re.fullmatch(r"(lib.+\.so)\.[\d.]+", file.source.name))
                    for name in dict.fromkeys((file.source.name, f"{library[1]}.1"))
                ]
                binds = [
                    Bind(Path(node.get("hostPath") or node["path"]), node["path"], writable=True) for node in nodes
                ]
                of_file[str(device["name"])] = binds, files
            devices |= of_file
        except (AttributeError, KeyError, OSError, TypeError, ValueError, yaml.YAMLError) as error:
            unreadable = path, error
    if unreadable and not set(ids) <= devices.keys():
        raise SandboxError(f"The CDI specification {unreadable[0]} can't be read.", hint=_HINT) from unreadable[1]
    return devices


def _driver() -> dict[str, tuple[list[Bind], list[Bind]]]:
    """Return the device nodes of each GPU, by UUID and by minor number; there are no files."""
    devices, shared = {}, [path for name in _SHARED if (path := NODES / name).exists()]
    for path in sorted(DRIVER.glob("*/information")):
        fields = dict(line.partition(":")[::2] for line in path.read_text().splitlines())
        minor = fields.get("Device Minor", "").strip()
        if minor.isdigit():
            nodes = [NODES / f"nvidia{minor}", *shared]
            binds = [Bind(node, f"/dev/{node.name}", writable=True) for node in nodes], list[Bind]()
            devices[minor] = devices[fields.get("GPU UUID", "").strip()] = binds
    return devices
