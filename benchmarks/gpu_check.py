"""Check which GPUs agents see in each sandbox: `uv run python benchmarks/gpu_check.py [--sandbox ID …]`.

For each sandbox that works here: a run without GPUs sees none; a run with one GPU gets one device, which its variables
name, and which NVIDIA's tool, PyTorch, TensorFlow and JAX report if they are installed; `mleredux doctor --gpu` reports
no error; concurrent runs, as many as there are GPUs or MIG slices, share none. Takes about five minutes; exit code 0 if
all checks pass, 1 if not, 2 without a GPU.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import mleredux
from mleredux._core.plugins import current
from mleredux._core.sandboxes.slots import gpu_uuids, machine
from mleredux.errors import MlereduxError
from mleredux_containers.gpu_check import PROBE, diagnose_gpus, faults

SUBMIT = """
import shutil
shutil.copy(os.environ["MLEREDUX_DATA_DIR"] + "/sample_submission.csv", os.environ["MLEREDUX_SUBMISSION"])
"""


def seen(sandbox: str, gpus: int, home: Path) -> dict[str, Any]:
    """Return what the probe of `mleredux doctor --gpu` saw in a run with a number of GPUs.

    Raises:
        MlereduxError: The run ended without a result, or was refused.
    """
    limits = {"gpus": gpus, "cpus": 1, "time_limit": 120}
    run = mleredux.run("digits", agent=str(home / "probe.py"), sandbox=sandbox, limits=limits, runs_dir=home / "runs")
    try:
        visible: dict[str, Any] = json.loads(run.agent_log.read_text(errors="replace").splitlines()[-1])
    except (OSError, ValueError, IndexError) as error:
        raise MlereduxError(f"Run {run.id} printed nothing ({run.message or run.state}).") from error
    return visible


def check(sandbox: str, home: Path, devices: int) -> list[str]:
    """Return all errors in a sandbox, one sentence each."""
    contained = current().sandbox(sandbox).capabilities.isolated
    wrong = []
    try:
        for gpus in (0, 1):
            visible = seen(sandbox, gpus, home)
            print(f"{sandbox}, {gpus} GPUs: {json.dumps(visible)}", flush=True)
            wrong += faults(visible, gpus, contained=contained)
        with ThreadPoolExecutor(devices) as pool:
            each = list(pool.map(lambda _: seen(sandbox, 1, home), range(devices)))
        uuids = [tuple(visible["driver"]) for visible in each if contained and visible["driver"]]
        if len(set(uuids)) != len(uuids):
            wrong.append(f"Runs at the same time shared a device: {uuids}.")
    except MlereduxError as error:
        wrong.append(str(error))
    return wrong


def main() -> int:
    """Check the sandboxes, and print errors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sandbox", action="append", help="check this sandbox; by default all that can give GPUs")
    options = parser.parse_args()
    gpus = machine().gpus
    if not gpus:
        print(f"There is no GPU on this machine, so nothing was checked. {gpu_uuids()[1] or ''}".rstrip())
        return 2
    print(f"GPUs and slices: {', '.join(gpus)}. Driver: {re.sub(chr(10), ' ', _driver())}")
    names = options.sandbox or [
        name for name in current().entries("sandboxes") if current().sandbox(name).capabilities.gpus
    ]
    wrong = {}
    with tempfile.TemporaryDirectory(prefix="mleredux-gpus-") as folder:
        (Path(folder) / "probe.py").write_text(PROBE + SUBMIT)
        for name in names:
            if bad := [finding for finding in current().sandbox(name).check() if not finding.ok]:
                print(f"{name}: not checked. {bad[0].message}")
                continue
            *_, doctor = [one for one in diagnose_gpus(current(), [name]) if one.finding.name == name]
            print(f"{name}, mleredux doctor --gpu: {doctor.finding.message}", flush=True)
            wrong[name] = check(name, Path(folder), len(gpus))
            if not doctor.finding.ok:
                wrong[name].append(f"`mleredux doctor --gpu` reports: {doctor.finding.message}")
    for name, sentences in wrong.items():
        print(f"{name}: {'all holds' if not sentences else ' '.join(sentences)}")
    return 1 if not wrong or any(wrong.values()) else 0


def _driver() -> str:
    version = Path("/proc/driver/nvidia/version")
    return version.read_text().strip() if version.exists() else "not loaded"


if __name__ == "__main__":
    sys.exit(main())
