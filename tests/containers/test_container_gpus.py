"""A run sees its own GPUs alone, in each sandbox; harmless devices that every machine has replace real ones."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mleredux._core.plugins import current
from mleredux._core.sandboxes.slots import Slots
from mleredux._core.store import Run
from mleredux.errors import SandboxError
from mleredux_containers import gpus
from mleredux_containers.gpu_check import diagnose_gpus
from mleredux_testing.launches import wait_for

PROBE = """
import json, os
names = sorted(name for name in os.listdir("/dev") if name.startswith("nvidia"))
shown = {name: os.environ.get(name) for name in ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "LD_LIBRARY_PATH")}
print(json.dumps({"devices": {name: open(f"/dev/{name}", "rb").read(4).hex() for name in names}, **shown}))
"""
MOUNTED = """
import json, os
shown = {{name: os.environ.get(name) for name in ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "LD_LIBRARY_PATH")}}
devices = {{path: os.stat(path).st_rdev for path in {devices} if os.path.exists(path)}}
print(json.dumps({{"devices": devices, **shown, "library": open("{library}").read()}}))
"""
LIBRARY = f"{gpus.LIBRARIES}/libcuda.so.1"
NODES = {"/dev/nvidia0": "/dev/zero", "/dev/nvidia1": "/dev/full"}
"""Devices in place of a GPU and a slice, with other paths in the container."""
DEVICES = {"/dev/fuse": "0", "/dev/net/tun": "MIG-1"}
"""Devices in place of a GPU and a slice. Apptainer shows devices at their own paths only."""


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A driver with the GPUs `GPU-a` and `GPU-b`: nodes that read as zeros and as nothing."""
    for minor, (uuid, node) in enumerate((("GPU-a", "/dev/zero"), ("GPU-b", "/dev/null"))):
        folder = tmp_path / "driver" / str(minor)
        folder.mkdir(parents=True)
        (folder / "information").write_text(f"GPU UUID: {uuid}\nDevice Minor: {minor}\n")
        (tmp_path / "dev").mkdir(exist_ok=True)
        (tmp_path / "dev" / f"nvidia{minor}").symlink_to(node)
    monkeypatch.setattr(gpus, "DRIVER", tmp_path / "driver")
    monkeypatch.setattr(gpus, "NODES", tmp_path / "dev")
    monkeypatch.setattr(gpus, "FOLDERS", (tmp_path / "cdi",))
    return tmp_path


def specify(folder: Path, library: Path, nodes: dict[str, dict[str, str]], torch: str = "") -> None:
    """Write a CDI specification of devices, by name, with a library of the driver, and optionally a framework."""
    devices = [{"name": name, "containerEdits": {"deviceNodes": [node]}} for name, node in nodes.items()]
    mounts = [{"hostPath": str(library), "containerPath": f"/usr/lib/{library.name}"}]
    if torch:
        (folder / "torch.py").write_text(torch)
        mounts.append(
            {"hostPath": str(folder / "torch.py"), "containerPath": "/usr/lib/python3/dist-packages/torch.py"}
        )
    content = {"kind": "nvidia.com/gpu", "devices": devices, "containerEdits": {"mounts": mounts}}
    (folder / "cdi").mkdir()
    (folder / "cdi" / "nvidia.json").write_text(json.dumps(content))
    library.write_text("a library\n")


@pytest.mark.engines("podman")
@pytest.mark.parametrize(
    ("ids", "devices"),
    [(("GPU-a",), {"nvidia0": "00000000"}), (("GPU-b", "GPU-a"), {"nvidia0": "00000000", "nvidia1": ""}), ((), {})],
)
def test_a_run_sees_its_own_devices_alone(
    make_launch: Callable[..., Any],
    run: Callable[..., Any],
    driver: Path,
    ids: tuple[str, ...],
    devices: dict[str, str],
) -> None:
    ended, log = run(make_launch("python3", "-c", PROBE, gpu_ids=ids))
    assert ended.code == 0, log
    found = json.loads(log)
    assert found["devices"] == devices and found["CUDA_VISIBLE_DEVICES"] == (",".join(ids) or None)
    assert found["NVIDIA_VISIBLE_DEVICES"] == (",".join(ids) or None) and found["LD_LIBRARY_PATH"] is None


@pytest.mark.engines("apptainer")
@pytest.mark.parametrize(
    ("ids", "seen", "numbers"),
    [(("0",), {"/dev/fuse"}, "0"), (("MIG-1",), {"/dev/net/tun"}, "MIG-1"), (("MIG-1", "0"), set(DEVICES), "MIG-1,1")],
)
def test_a_run_in_apptainer_sees_its_own_devices_and_the_drivers_libraries(
    make_launch: Callable[..., Any],
    run: Callable[..., Any],
    driver: Path,
    ids: tuple[str, ...],
    seen: set[str],
    numbers: str,
) -> None:
    library = driver / "libcuda.so.550.54"
    specify(driver, library, {name: {"path": path} for path, name in DEVICES.items()})
    ended, log = run(make_launch("python3", "-c", MOUNTED.format(devices=list(DEVICES), library=LIBRARY), gpu_ids=ids))
    assert ended.code == 0, log
    found = json.loads(log)
    expected = {path: Path(path).stat().st_rdev for path in seen}
    assert (found["devices"], found["CUDA_VISIBLE_DEVICES"]) == (expected, numbers)
    assert (found["NVIDIA_VISIBLE_DEVICES"], found["library"]) == (",".join(ids), "a library\n")
    assert found["LD_LIBRARY_PATH"] == gpus.LIBRARIES


@pytest.mark.engines("docker")
@pytest.mark.parametrize(
    ("ids", "seen", "numbers"),
    [(("0",), {"/dev/nvidia0"}, "0"), (("MIG-1",), {"/dev/nvidia1"}, "MIG-1"), (("MIG-1", "0"), set(NODES), "MIG-1,1")],
)
def test_a_run_in_docker_gets_what_the_specification_lists(
    make_launch: Callable[..., Any],
    run: Callable[..., Any],
    driver: Path,
    ids: tuple[str, ...],
    seen: set[str],
    numbers: str,
) -> None:
    places = zip(("0", "MIG-1"), NODES.items(), strict=True)
    specify(
        driver,
        driver / "libcuda.so.550.54",
        {name: {"path": path, "hostPath": source} for name, (path, source) in places},
    )
    ended, log = run(make_launch("python3", "-c", MOUNTED.format(devices=list(NODES), library=LIBRARY), gpu_ids=ids))
    assert ended.code == 0, log
    found = json.loads(log)
    expected = {path: Path(NODES[path]).stat().st_rdev for path in seen}
    assert (found["devices"], found["CUDA_VISIBLE_DEVICES"]) == (expected, numbers)
    assert (found["NVIDIA_VISIBLE_DEVICES"], found["library"]) == (",".join(ids), "a library\n")
    assert found["LD_LIBRARY_PATH"] == gpus.LIBRARIES


@pytest.mark.engines("docker")
def test_an_engine_without_the_toolkit_needs_a_specification(
    make_launch: Callable[..., Any], run: Callable[..., Any], driver: Path
) -> None:
    with pytest.raises(SandboxError, match="has no toolkit for GPUs, and there is no CDI specification") as refused:
        run(make_launch("true", gpu_ids=("GPU-a",)))
    assert "nvidia-ctk cdi generate" in (refused.value.hint or "")


@pytest.mark.engines("docker", "podman", "apptainer")
def test_the_doctor_shows_what_an_agent_would_see(engine: str, driver: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if engine != "podman":  # which looks names up in the machine's own specification
        path = "/dev/nvidia0" if engine == "docker" else "/dev/zero"
        specify(driver, driver / "libcuda.so.550.54", {"GPU-a": {"path": path, "hostPath": "/dev/zero"}})
    monkeypatch.setenv("MLEREDUX_GPUS", "GPU-a,GPU-b")
    slots, found, *_ = [diagnosis.finding for diagnosis in diagnose_gpus(current(), [engine])]
    assert slots.message == "GPU-a, GPU-b."
    node = "No device node of a GPU is visible. No device node" if engine == "apptainer" else "/dev/nvidia0"
    variables = "CUDA_VISIBLE_DEVICES=GPU-a, NVIDIA_VISIBLE_DEVICES=GPU-a"
    assert found.message == f"{node}; {variables}; no PyTorch, TensorFlow or JAX."
    assert found.ok == (engine != "apptainer")  # it shows devices at their own paths only
    monkeypatch.setenv("MLEREDUX_GPUS", "MIG-2")
    _, found, none = [diagnosis.finding for diagnosis in diagnose_gpus(current(), [engine])]
    assert not found.ok and found.message.startswith("MIG slice MIG-2 is not known to") and not none.ok
    assert "nvidia-ctk cdi generate" in (found.remedy or "")


@pytest.mark.engines("docker", "podman", "apptainer")
def test_the_doctor_says_why_a_framework_cannot_use_a_busy_device(
    engine: str, driver: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = "class cuda:\n    def device_count(): raise RuntimeError('CUDA error: device busy')\n"
    node = {"path": "/dev/nvidia0" if engine == "docker" else "/dev/fuse"}
    specify(driver, driver / "libcuda.so.550.54", {"GPU-a": {**node, "hostPath": "/dev/fuse"}}, busy)
    if engine == "podman":  # it looks names up in the machine's own specification, so this is a default of containers
        (driver / "cdi" / "nvidia.json").unlink()
        volume = f"{driver / 'torch.py'}:/usr/lib/python3/dist-packages/torch.py:ro"
        (driver / "containers.conf").write_text(f"[containers]\nvolumes = [{json.dumps(volume)}]\n")
        monkeypatch.setenv("CONTAINERS_CONF", str(driver / "containers.conf"))
    monkeypatch.setenv("MLEREDUX_GPUS", "GPU-a")
    _, found, *_ = [diagnosis.finding for diagnosis in diagnose_gpus(current(), [engine])]
    assert not found.ok and "torch fails (CUDA error: device busy)" in found.message, found.message


@pytest.mark.engines("docker")
def test_the_check_for_machines_with_gpus_passes(
    engine: str, driver: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = {name: {"path": f"/dev/nvidia{name}", "hostPath": "/dev/zero"} for name in ("0", "1")}
    specify(driver, driver / "libcuda.so.550.54", path)
    monkeypatch.setenv("MLEREDUX_GPUS", "0,1")
    monkeypatch.setattr("sys.argv", ["gpu_check.py", "--sandbox", engine])
    script = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "gpu_check.py"))
    code = script["main"]()
    printed = capsys.readouterr().out
    assert code == 0 and "docker: all holds" in printed, printed
    assert "docker, mleredux doctor --gpu: /dev/nvidia0; CUDA_VISIBLE_DEVICES=0, NVIDIA_VISIBLE_DEVICES=0; " in printed


FAILURES = {
    "the device is gone": ("GPU-a", "The device {folder}/gone of GPU GPU-a no longer exists."),
    "the device is none": ("GPU-n", "The device {folder}/cdi of GPU GPU-n no longer exists."),
    "the driver was updated": ("GPU-c", "The driver's file {folder}/libcuda.so.550.54 no longer exists."),
    "the slice is gone": (
        "MIG-2", "MIG slice MIG-2 is not known to the CDI specification in {folder}/cdi or the driver."
    ),
    "the GPU is gone": ("GPU-d", "GPU GPU-d is not known to the CDI specification in {folder}/cdi or the driver."),
    "one of two is gone": ("GPU-c,GPU-b", "Only some of the GPUs GPU-c, GPU-b are in the CDI specification."),
    "the tool wrote half a file": ("GPU-a", "The CDI specification {folder}/cdi/nvidia.json can't be read."),
}  # fmt: skip
"""Ids and sentences; the driver has `GPU-a` and `GPU-b`, and the specification what it had before."""


@pytest.mark.engines("docker", "podman", "apptainer")
@pytest.mark.parametrize("failure", FAILURES)
def test_a_failure_is_the_same_sentence_before_the_start_in_every_sandbox(
    make_launch: Callable[..., Any], run: Callable[..., Any], driver: Path, failure: str
) -> None:
    nodes = {"GPU-a": driver / "gone", "GPU-n": driver / "cdi", "GPU-c": Path("/dev/null")}
    library = driver / "libcuda.so.550.54"
    specify(driver, library, {name: {"path": str(path)} for name, path in nodes.items()})
    if "updated" in failure:
        library.unlink()
    if "half" in failure:
        path = driver / "cdi" / "nvidia.json"
        path.write_text(path.read_text()[:-9])
    ids, sentence = FAILURES[failure]
    with pytest.raises(SandboxError) as refused:
        run(make_launch("true", gpu_ids=tuple(ids.split(","))))
    assert str(refused.value).startswith(sentence.format(folder=driver))
    assert "nvidia-ctk cdi generate" in (refused.value.hint or "")


PROGRAM = """
import sys
from pathlib import Path
from mleredux_containers import gpus
folder = Path(sys.argv.pop(1))
gpus.DRIVER, gpus.NODES, gpus.FOLDERS = folder / "driver", folder / "dev", (folder / "cdi",)
from mleredux._core.cli.root import root
root(prog_name="mleredux")
"""
HOLDER = """
import os, pathlib, time
while True:
    moment = pathlib.Path("/output/moment")
    moment.with_suffix(".new").write_text(str(time.time()))
    moment.with_suffix(".new").rename(moment)
    time.sleep(0.02)
"""
NEXT = """
import os, pathlib, shutil, time
pathlib.Path("/output/began").write_text(f"{time.time()} {os.environ['CUDA_VISIBLE_DEVICES']}")
shutil.copy("/task/data/sample_submission.csv", "/output/submission.csv")
"""


@pytest.mark.engines("docker", "podman", "apptainer")
def test_a_slot_is_held_until_the_agent_of_a_killed_program_has_ended(
    engine: str, driver: Path, tmp_path_factory: pytest.TempPathFactory, containers: Callable[[str], list[str]]
) -> None:
    """A second agent waits for the only device, never shares it, and one that needs two is refused."""
    if engine != "podman":  # which looks names up in the machine's own specification
        path = {"path": "/dev/nvidia0" if engine == "docker" else "/dev/fuse", "hostPath": "/dev/fuse"}
        specify(driver, driver / "libcuda.so.550.54", {"GPU-a": path})
    home = tmp_path_factory.mktemp("slots")
    for name, code in (("holder", HOLDER), ("next", NEXT)):
        (home / f"{name}.py").write_text(code)
    runs, environment = (
        home / "runs",
        {**os.environ, "MLEREDUX_GPUS": "GPU-a", "MLEREDUX_PLUGINS": "mleredux_testing.toys"},
    )
    words = ["--sandbox", engine, "--runs-dir", str(runs), "--data-dir", str(home / "data"), "--cpus", "0.5", "--json"]

    def start(agent: str, gpus: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", PROGRAM, str(driver), "run", "toy", "--agent", str(home / f"{agent}.py")]
        return subprocess.Popen(
            [*command, "--gpus", str(gpus), *words],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    first = start("holder", 1)
    try:
        [moment] = wait_for(lambda: list(runs.glob("*/output/moment")), 180)
        [slot] = Slots(runs).held()
        assert (slot.run, slot.gpus) == (moment.parents[1].name, ("GPU-a",))
        refused = start("next", 2)
        answer, said = refused.communicate(timeout=180)
        assert refused.returncode and "requests more than this machine has: 2 GPUs of 1." in answer, said
        second = start("next", 1)
        assert wait_for(lambda: len(list(runs.glob("*/events.jsonl"))) == 3, 60)
        assert second.poll() is None and len(Slots(runs).held()) == 1
    finally:
        first.kill()
        first.communicate()
    printed, said = second.communicate(timeout=240)
    record = json.loads(printed)
    assert record["status"] == "done", said
    began, devices = (Run(Path(record["path"])).output_dir / "began").read_text().split()
    assert float(began) > float(moment.read_text()) and devices in ("GPU-a", "0")
    assert wait_for(lambda: not containers(slot.run), 60) and not Slots(runs).held()
