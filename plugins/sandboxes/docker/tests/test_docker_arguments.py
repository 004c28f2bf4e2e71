"""What the engine is asked for, where this machine need not have it: GPUs, runtimes, other engines' ways."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import mleredux_containers.profile as kit
import pytest
from mleredux._core.protocols import Built, Exit, Launch
from mleredux.errors import SandboxError
from mleredux.models import Agent, Limits
from mleredux_containers import gpus, host
from mleredux_sandbox_docker import container, doctor
from mleredux_sandbox_docker import sandbox as docker_sandbox
from mleredux_sandbox_docker.sandbox import DockerSandbox


@pytest.fixture
def launch(tmp_path):
    return Launch(
        run_id="r",
        owner="o",
        agent=Agent(id="a", title="A", command=("true",)),
        built=Built("sha256:1", "image", True),
        command=("true",),
        limits=Limits(cpus=64, memory_mb=1000, processes=100),
        network="none",
        task_dir=tmp_path,
        data_dir=tmp_path,
        output_dir=tmp_path,
        scratch_dir=tmp_path,
        control_dir=tmp_path,
        log=tmp_path / "log",
        env={"MLEREDUX_TASK": "digits"},
    )


def settings(launch, image_env=(), **options):
    image = kit.Image.from_record({"Id": "sha256:1", "Config": {"Env": list(image_env)}})
    made = kit.container(launch, image, user=(1000, 1000), cpus=4, listed=lambda image: "")
    return container.settings(made, **options)


def changed(launch, **changes):
    return Launch(**{**vars(launch), **changes})


@pytest.fixture
def driver(tmp_path, monkeypatch):
    """A driver with the GPUs `GPU-1` and 3: nodes that every machine has."""
    monkeypatch.setattr(gpus, "DRIVER", tmp_path / "driver")
    monkeypatch.setattr(gpus, "NODES", tmp_path)
    monkeypatch.setattr(gpus, "FOLDERS", (tmp_path / "cdi",))
    for minor, uuid in ((1, "GPU-1"), (3, "GPU-3")):
        (tmp_path / "driver" / uuid).mkdir(parents=True)
        (tmp_path / "driver" / uuid / "information").write_text(f"GPU UUID: {uuid}\nDevice Minor: {minor}\n")
        (tmp_path / f"nvidia{minor}").symlink_to("/dev/null")
    return tmp_path


def test_without_a_specification_the_toolkit_is_asked_for_devices(launch, driver):
    request = settings(changed(launch, gpu_ids=("GPU-1", "3")))["host_config"]["device_requests"]
    assert [dict(each) for each in request] == [
        {"Driver": "", "Count": 0, "DeviceIDs": ["GPU-1", "3"], "Capabilities": [["gpu"]], "Options": {}}
    ]
    assert "device_requests" not in settings(launch)["host_config"]


def test_an_image_that_asks_for_all_gpus_gets_those_that_were_handed_out_alone(launch, driver):
    image_env = ["NVIDIA_VISIBLE_DEVICES=all"]
    assert settings(launch, image_env)["environment"]["NVIDIA_VISIBLE_DEVICES"] == "void"
    given = settings(changed(launch, gpu_ids=("GPU-1", "3")), image_env)["environment"]
    assert (given["NVIDIA_VISIBLE_DEVICES"], given["CUDA_VISIBLE_DEVICES"]) == ("GPU-1,3", "GPU-1,1")
    assert "NVIDIA_VISIBLE_DEVICES" not in settings(launch)["environment"]


def test_the_runtime_comes_from_the_sandbox_or_from_the_environment(launch, monkeypatch):
    monkeypatch.setenv("MLEREDUX_DOCKER_RUNTIME", "runsc")
    assert DockerSandbox().runtime == "runsc"
    assert DockerSandbox("sysbox-runc").runtime == "sysbox-runc"
    assert settings(launch, runtime="runsc")["host_config"]["runtime"] == "runsc"
    assert "runtime" not in settings(launch)["host_config"]


def test_no_more_cpus_are_asked_for_than_there_are_and_no_swap(launch):
    limits = settings(launch)["host_config"]
    assert limits["nano_cpus"] == 4_000_000_000
    assert limits["memswap_limit"] == limits["mem_limit"] == 1000 << 20


def test_the_engines_log_can_not_fill_its_disk(launch):
    config = settings(launch)["host_config"]["log_config"]
    assert config.config["max-size"].endswith("m")
    assert int(config.config["max-file"]) > 0


def test_a_users_proxy_settings_do_not_reach_an_agent(launch):
    assert settings(launch)["use_config_proxy"] is False


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"Env": ["AGENT_DIR=/home/agent"]}, ["bash", "/home/agent/start.sh"]),
        ({"Entrypoint": ["/run.sh"], "Cmd": ["--fast"]}, ["/run.sh", "--fast"]),
        ({"Cmd": ["python3"]}, ["python3"]),
    ],
)
def test_without_a_command_the_image_decides(launch, config, expected):
    image = kit.Image.from_record({"Id": "sha256:1", "Config": config})
    assert list(kit.command(changed(launch, command=()), image)) == expected


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({"Status": "running", "ExitCode": 0}, None),
        ({"Status": "exited", "ExitCode": 3}, Exit(3)),
        ({"Status": "exited", "ExitCode": 143}, Exit(None, signal=15)),
        ({"Status": "exited", "ExitCode": 137, "OOMKilled": True}, Exit(None, signal=9, out_of_memory=True)),
        ({"Status": "exited", "ExitCode": 0, "OOMKilled": True}, Exit(0)),
        ({"Status": "exited", "ExitCode": 255}, Exit(255)),
    ],
)
def test_how_a_container_ended_is_read_from_the_engines_state(state, expected):
    assert kit.exit_of(state) == expected


def test_the_doctor_names_what_is_missing_and_the_remedy():
    info = {
        "CgroupVersion": "2",
        "CgroupDriver": "none",
        "Driver": "vfs",
        "Runtimes": {"runc": {}},
        "MemoryLimit": True,
    }
    cgroup, storage = doctor._cgroup(info), doctor._storage(info)
    runtime, init = doctor._runtime(info, "runsc"), doctor._init(info)
    assert not any(finding.ok for finding in (cgroup, storage, runtime, init))
    assert "without CPU and process limits" in cgroup.message
    assert "overlay2" in storage.remedy
    assert "runsc" in runtime.remedy
    assert "tini" in init.remedy


def test_an_engine_that_cannot_limit_agents_is_refused(launch, monkeypatch):
    engine = SimpleNamespace(info=lambda: {"CgroupDriver": "none"}, inspect_image=lambda _: {}, close=lambda: None)
    monkeypatch.setattr(docker_sandbox, "connect", lambda: engine)
    monkeypatch.setattr(docker_sandbox, "find_image", lambda *_: None)
    for use in (lambda: DockerSandbox().build(None), lambda: DockerSandbox().start(launch)):
        with pytest.raises(SandboxError, match="can't limit an agent's memory, CPUs and processes"):
            use()


def test_passwords_are_masked_wherever_they_stand():
    secrets = host.secrets({"PIP_INDEX_URL": "https://user:s3cret@index.invalid/simple"})
    assert host.mask("fetching https://user:s3cret@index.invalid/simple; s3cret", secrets) == (
        "fetching https://***@index.invalid/simple; ***"
    )


def test_certificates_may_be_left_out(monkeypatch, tmp_path):
    (tmp_path / "ca.pem").write_text("one")
    monkeypatch.delenv("MLEREDUX_CA_BUNDLE", raising=False)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    assert host.ca_bundle() == b"one"
    monkeypatch.setenv("MLEREDUX_CA_BUNDLE", "none")
    assert host.ca_bundle() is None


def test_docker_is_imported_only_when_it_is_used():
    look = "import sys, mleredux_sandbox_docker.sandbox; sys.exit('docker' in sys.modules or 'requests' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", look], check=False).returncode == 0
