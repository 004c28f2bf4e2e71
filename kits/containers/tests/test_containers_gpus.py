"""Devices of GPUs, by CDI or the driver's table; harmless devices that every machine has replace real ones."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mleredux.errors import SandboxError
from mleredux_containers import gpus
from mleredux_containers.gpus import find_gpus

SLICE = "MIG-5a2c"


def device(name: str, number: int, host: str) -> dict[str, Any]:
    return {"name": name, "containerEdits": {"deviceNodes": [{"path": f"/dev/nvidia{number}", "hostPath": host}]}}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without GPUs: empty folders of CDI, of the driver's table and of devices."""
    for name in ("cdi", "driver", "dev"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(gpus, "FOLDERS", (tmp_path / "cdi", tmp_path / "nowhere"))
    monkeypatch.setattr(gpus, "DRIVER", tmp_path / "driver")
    monkeypatch.setattr(gpus, "NODES", tmp_path / "dev")
    return tmp_path


def specify(machine: Path, *devices: dict[str, Any], suffix: str = "json") -> Path:
    library = machine / "libcuda.so.550.54"
    library.touch()
    shared = {"deviceNodes": [{"path": "/dev/nvidiactl", "hostPath": "/dev/null"}]}
    mounts = [{"hostPath": str(library), "containerPath": "/usr/lib/libcuda.so.550.54", "options": ["ro"]}]
    content = {"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": devices}
    path = machine / "cdi" / f"nvidia.{suffix}"
    path.write_text(json.dumps({**content, "containerEdits": {**shared, "mounts": mounts}}))
    return path


def listed_by_driver(machine: Path, uuid: str, minor: int, node: str) -> None:
    folder = machine / "driver" / f"0000:0{minor}:00.0"
    folder.mkdir()
    (folder / "information").write_text(f"Model: \t\t T4\nGPU UUID: \t {uuid}\nDevice Minor: \t {minor}\n")
    (machine / "dev" / f"nvidia{minor}").symlink_to(node)


@pytest.mark.parametrize("suffix", ["json", "yaml"])
@pytest.mark.parametrize("name", ["0", "GPU-a", "0:1", SLICE])
def test_gpus_and_slices_of_a_specification_are_given_by_device(machine: Path, name: str, suffix: str) -> None:
    specify(machine, device(name, 0, "/dev/full"), device("GPU-other", 1, "/dev/zero"), suffix=suffix)
    found = find_gpus((name,))
    assert found.names == (f"nvidia.com/gpu={name}",)
    assert {(str(bind.source), bind.target) for bind in found.nodes} == {
        ("/dev/null", "/dev/nvidiactl"),
        ("/dev/full", "/dev/nvidia0"),
    }
    with pytest.raises(SandboxError, match="can't be mounted at /dev/nvidia"):
        found.binds()
    found = replace(found, nodes=tuple(replace(bind, target=str(bind.source)) for bind in found.nodes))
    targets = [bind.target for bind in found.binds() if bind.source.name.startswith("libcuda")]
    assert targets[0] == "/usr/lib/libcuda.so.550.54" and f"{gpus.LIBRARIES}/libcuda.so.1" in targets
    assert all(bind.writable == (bind in found.nodes) for bind in found.binds())


@pytest.mark.parametrize("name", ["GPU-a", "3"])
def test_without_a_specification_the_drivers_table_leads_to_whole_gpus(machine: Path, name: str) -> None:
    listed_by_driver(machine, "GPU-a", 3, "/dev/full")
    listed_by_driver(machine, "GPU-b", 4, "/dev/zero")
    (machine / "dev" / "nvidiactl").symlink_to("/dev/null")
    found = find_gpus((name,))
    assert not found.names and [bind.target for bind in found.nodes] == ["/dev/nvidia3", "/dev/nvidiactl"]


def test_a_run_without_gpus_needs_none_of_this(machine: Path) -> None:
    specify(machine).write_text("{")
    assert find_gpus(()) == gpus.Gpus() and not find_gpus(()).binds()


@pytest.mark.parametrize(
    ("names", "specified", "listed", "message"),
    [
        (
            ["GPU-a"],
            None,
            [],
            "GPU GPU-a is not known to a CDI specification, which is missing, or the driver, which is not loaded",
        ),
        ([SLICE], None, ["GPU-a"], "MIG slice MIG-5a2c is not known to a CDI specification, which is missing"),
        ([SLICE], ["GPU-a"], [], "MIG slice MIG-5a2c is not known to the CDI specification in"),
        (["0", "7"], ["0"], [], "GPU 7 is not known to the CDI specification"),
        (["5", "GPU-a"], ["5"], ["GPU-a"], "Only some of the GPUs 5, GPU-a are in the CDI specification"),
    ],
)
def test_unknown_gpus_are_refused_in_a_sentence(
    machine: Path, names: list[str], specified: list[str] | None, listed: list[str], message: str
) -> None:
    if specified is not None:
        specify(machine, *(device(name, place, "/dev/full") for place, name in enumerate(specified)))
    for place, name in enumerate(listed):
        listed_by_driver(machine, name, place, "/dev/zero")
    if not listed:
        (machine / "driver").rmdir()
    with pytest.raises(SandboxError, match=message) as refused:
        find_gpus(names)
    assert "nvidia-ctk cdi generate" in (refused.value.hint or "") and str(refused.value).count("\n") == 0


@pytest.mark.parametrize("host", ["/dev/gone", "/etc/passwd", "/tmp"])
def test_a_device_that_is_gone_or_none_is_refused(machine: Path, host: str) -> None:
    specify(machine, device("0", 0, host))
    with pytest.raises(SandboxError, match=f"The device {host} of GPU 0 no longer exists"):
        find_gpus(("0",))


def of_devices(*devices: Any, **fields: Any) -> str:
    return json.dumps({"kind": "nvidia.com/gpu", "devices": devices, **fields})


def with_edits(**edits: Any) -> str:
    return of_devices({"name": "0", "containerEdits": edits})


@pytest.mark.parametrize(
    "content",
    [
        *("{", "a: [", "\x00", "[1]", "text", "kind: a\n---\nkind: b\n"),
        *(of_devices(devices=wrong) for wrong in (3, "0", {"0": {}})),
        *(of_devices(wrong) for wrong in (None, 3, "0", ["0"], {}, {"name": "0", "containerEdits": [1]})),
        *(of_devices({"name": "0"}, containerEdits=wrong) for wrong in (3, "text", [1])),
        *(with_edits(deviceNodes=wrong) for wrong in (3, "text", {"path": 1}, [3], [{}], [{"path": 5}])),
        *(with_edits(mounts=wrong) for wrong in (3, "text", [3], [{}], [{"hostPath": None, "containerPath": "/x"}])),
    ],
)
def test_a_broken_specification_is_refused_by_its_name(machine: Path, content: str) -> None:
    path = specify(machine)
    path.write_text(content)
    with pytest.raises(SandboxError, match=f"The CDI specification {path} can't be read.") as refused:
        find_gpus(("0",))
    assert "nvidia-ctk cdi generate" in (refused.value.hint or "")


@pytest.mark.parametrize("content", ["", "kind: amd.com/gpu\ndevices: 3\n", "kind: [nvidia.com/gpu]\n"])
def test_an_empty_specification_and_those_of_other_devices_are_passed_over(machine: Path, content: str) -> None:
    specify(machine, device("0", 0, "/dev/full"))
    (machine / "cdi" / "other.yaml").write_text(content)
    assert find_gpus(("0",)).names == ("nvidia.com/gpu=0",)


@pytest.mark.parametrize("name", ["a-damaged.yaml", "z-damaged.json"])
def test_a_damaged_specification_does_not_matter_if_others_have_the_gpu(machine: Path, name: str) -> None:
    specify(machine, device("0", 0, "/dev/full"))
    (machine / "cdi" / name).write_text("kind: [")
    assert find_gpus(("0",)).names == ("nvidia.com/gpu=0",)
    with pytest.raises(SandboxError, match=f"{name} can't be read"):
        find_gpus(("1",))


def test_json_may_be_indented_by_tabs(machine: Path) -> None:
    path = specify(machine, device("0", 0, "/dev/full"))
    path.write_text(json.dumps(json.loads(path.read_text()), indent="\t"))
    assert find_gpus(("0",)).names == ("nvidia.com/gpu=0",)


def test_of_two_specifications_the_later_folder_alone_describes_a_device(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old files of the driver, as the earlier specification lists them, may be gone."""
    specify(machine, device("0", 0, "/dev/zero"), device("1", 1, "/dev/zero"))
    (machine / "cdi").rename(machine / "old")
    (machine / "cdi").mkdir()
    monkeypatch.setattr(gpus, "FOLDERS", (machine / "old", machine / "cdi"))
    specify(machine, device("0", 0, "/dev/full")).write_text(with_edits(deviceNodes=[{"path": "/dev/full"}]))
    (machine / "libcuda.so.550.54").unlink()
    assert [str(bind.source) for bind in find_gpus(("0",)).binds()] == ["/dev/full"]
    with pytest.raises(SandboxError, match=r"The driver's file .*libcuda.so.550.54 no longer exists"):
        find_gpus(("1",))
