"""Check which GPUs an agent would see in each sandbox, by running a probe as an agent."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from importlib import resources
from pathlib import Path
from typing import Any

from mleredux._core.checks.machine import Diagnosis, checked, require_one
from mleredux._core.plugins import Catalogue
from mleredux._core.protocols import BuildRequest, Finding, Launch, Sandbox
from mleredux._core.sandboxes.slots import DEVICES_VARIABLE, GPUS_VARIABLE, gpu_uuids, machine
from mleredux._core.sandboxes.variables import gpu_environment
from mleredux.models import Agent, Limits
from mleredux.models.formats import counted

PROBE = resources.files(__package__).joinpath("inside", "gpu_probe.py").read_text(encoding="utf-8")
_SECONDS = 120
_FOLDERS = ("task", "data", "output", "scratch", "control")


def diagnose_gpus(catalogue: Catalogue, sandboxes: Sequence[str] = (), agent: str | None = None) -> list[Diagnosis]:
    """Run the probe in sandboxes, with a GPU or MIG slice of this machine if it has one.

    Args:
        catalogue: The installed plugins.
        sandboxes: Ids of sandboxes; all if empty.
        agent: Id of the agent in whose environment the probe runs, by default one without packages.
    """
    probed = catalogue.agent(agent) if agent else Agent(id="gpu-probe", title="GPU probe", command=("true",))
    has = machine().gpus
    remedy = f"Install or repair the driver, or name the devices in {GPUS_VARIABLE}."
    slots = Finding("slots", bool(has), f"{', '.join(has)}." if has else _no_gpu_reason(), remedy)
    names = sandboxes or list(catalogue.entries("sandboxes"))
    looked = checked(names, lambda name: [_finding(catalogue.sandbox(name), probed, has[:1])])
    return [Diagnosis("gpus", slots, required=True), *require_one("gpus", looked, "No sandbox gives an agent its GPU.")]


def faults(seen: dict[str, Any], gpus: int, *, contained: bool) -> Iterator[str]:
    """Yield errors in a probe's observations, one sentence each.

    Args:
        seen: The output of the probe.
        gpus: How many devices its run has.
        contained: Whether its sandbox hides other devices.
    """
    named = [name for name in (seen["variables"]["CUDA_VISIBLE_DEVICES"] or "").split(",") if name not in ("", "-1")]
    if len(named) != gpus:
        yield f"CUDA_VISIBLE_DEVICES names {len(named)} devices, not {gpus}."
    nodes = [path for path in seen["nodes"] if re.fullmatch(r"/dev/nvidia\d+", path)]
    if contained and len(nodes) > gpus:
        yield f"The agent can open the devices of other runs, because {len(nodes)} are visible."
    if gpus and not seen["nodes"]:
        yield "No device node of a GPU is visible."
    for name, count in seen["frameworks"].items():
        if count != gpus:
            yield f"{name} {'finds ' + counted(count, 'GPU') if isinstance(count, int) else f'fails ({count})'}."


def _no_gpu_reason() -> str:
    """Return the reason why this machine has no slot with a GPU."""
    listed, broken = gpu_uuids()
    if os.environ.get(GPUS_VARIABLE) is not None:
        return f"No GPU is used: {GPUS_VARIABLE} is empty."
    if listed:
        return f"No GPU is used: {DEVICES_VARIABLE}={os.environ.get(DEVICES_VARIABLE)!r} hides all of them."
    return broken or f"No GPU is used: nvidia-smi {'lists none' if shutil.which('nvidia-smi') else 'is not installed'}."


def _finding(sandbox: Sandbox, agent: Agent, ids: tuple[str, ...]) -> Finding:
    """Return the devices that an agent in a sandbox sees."""
    if not sandbox.capabilities.gpus:
        return Finding(sandbox.id, False, "This sandbox can't give GPUs to agents.", "Choose another sandbox.")
    last = _output(sandbox, agent, ids).strip().rpartition("\n")[2]
    try:
        seen = json.loads(last)
    except ValueError:
        return Finding(
            sandbox.id, False, f"The probe failed: {last[-300:] or 'it printed nothing'}.", "See `mleredux doctor`."
        )
    wrong = list(faults(seen, len(ids), contained=sandbox.capabilities.isolated))
    why = [] if ids or wrong else ["An agent sees no GPU, because this machine has no slot with one."]
    shown = [
        ", ".join(seen["nodes"]) or "No device node",
        ", ".join(f"{name}={value}" for name, value in seen["variables"].items()),
        *([f"nvidia-smi lists {', '.join(seen['driver'])}"] if seen["driver"] else []),
        ", ".join(f"{name} finds {count}" for name, count in seen["frameworks"].items())
        or "no PyTorch, TensorFlow or JAX",
    ]
    return Finding(sandbox.id, not wrong, f"{' '.join([*wrong, *why, '; '.join(shown)])}.")


def _output(sandbox: Sandbox, agent: Agent, ids: tuple[str, ...]) -> str:
    """Run the probe as an agent; return its output."""
    with tempfile.TemporaryDirectory(prefix="mleredux-gpus-") as folder:
        home = Path(folder).resolve()
        home.chmod(0o755)
        for name in (*_FOLDERS, "task/data"):
            (home / name).mkdir()
        handle = sandbox.start(
            Launch(
                run_id=home.name,
                owner=home.name,
                agent=agent,
                built=sandbox.build(BuildRequest(agent, home / "build.log")),
                command=("python3", "-c", PROBE),
                limits=Limits(gpus=len(ids)),
                network="none",
                log=home / "probe.log",
                env=gpu_environment(ids),
                gpu_ids=ids,
                **{f"{name}_dir": home / name for name in _FOLDERS},  # type: ignore[arg-type]
            )
        )
        with closing(handle):
            until = time.monotonic() + _SECONDS
            while handle.poll() is None and time.monotonic() < until:
                time.sleep(0.05)
        return (home / "probe.log").read_text(encoding="utf-8", errors="replace")
