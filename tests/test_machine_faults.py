"""A fault of the machine is one sentence and one cause, in whichever sandbox it happens."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import docker
import mleredux_sandbox_apptainer.engine
import mleredux_sandbox_docker.engine
import mleredux_sandbox_podman.engine
import pytest
from mleredux._core.stages.failures import failure_of
from mleredux.models import Cause
from mleredux_agent_repo.environments import _failed

FULL = "The disk is full (No space left on device). Free some space, or choose a folder on another disk."
NO_NAMES = "Host names can't be resolved. Check this machine's network, its DNS servers and its proxy settings."
FAULTS = {
    "write /var/tmp/storage/layer: no space left on device": FULL,
    "tar: ./model.bin: Cannot write: No space left on device": FULL,
    "mkdir /home/u/.cache: disk quota exceeded": FULL,
    "dial tcp: lookup registry-1.docker.io on 127.0.0.1:53: no such host": NO_NAMES,
    "Temporary failure in name resolution": NO_NAMES,
    "failed to lookup address information: Name or service not known": NO_NAMES,
}
Engine = Callable[[str, Path, pytest.MonkeyPatch], None]


def _program(name: str, text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = folder / name
    program.write_text(f'#!/bin/sh\necho "FATAL: {text}" >&2\nexit 255\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def _podman(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _program("podman", text, folder, monkeypatch)
    mleredux_sandbox_podman.engine.call("The image can't be fetched", "pull", "image")


def _apptainer(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _program("apptainer", text, folder, monkeypatch)
    mleredux_sandbox_apptainer.engine.call("The image can't be fetched", "pull", "image")


def _docker(text: str, _folder: Path, _monkeypatch: pytest.MonkeyPatch) -> None:
    with mleredux_sandbox_docker.engine.engine_errors("The image can't be fetched"):
        raise docker.errors.APIError("500 Server Error", explanation=text)


def _process(text: str, folder: Path, _monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "build.log").write_text(f"Collecting numpy\nerror: {text}\nhint: try again\n")
    raise _failed(folder / "build.log")


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("engine", [_process, _docker, _podman, _apptainer])
def test_a_fault_of_the_machine_is_one_sentence(
    engine: Engine, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Exception) as caught:
        engine(fault, tmp_path, monkeypatch)
    failure = failure_of(caught.value)
    assert (failure.cause, failure.message) == (Cause.ENVIRONMENT_BROKE, FAULTS[fault])


@pytest.mark.parametrize("engine", [_process, _docker, _podman, _apptainer])
def test_other_failures_keep_their_own_sentence(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Exception) as caught:
        engine("No matching distribution found for nmupy", tmp_path, monkeypatch)
    assert "No matching distribution found for nmupy" in failure_of(caught.value).message


def test_a_full_disk_by_its_number_is_the_same_sentence() -> None:
    assert failure_of(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))).message == FULL
