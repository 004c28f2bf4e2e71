"""A task's known answers in an agent's image: no path, however spelled, leads to them, and all else is read."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from mleredux._core.protocols import BuildRequest, Built, Exit, Launch, Sandbox
from mleredux.models import Agent, Build
from mleredux_containers import folders

pytestmark = pytest.mark.engines("docker", "podman", "apptainer")
DIGITS = ("sklearn.datasets.load_digits",)
KNOWN = (
    "/usr/lib/python3/dist-packages/sklearn/datasets/data/digits.csv.gz",
    "/opt/conda/pkgs/scikit-learn-1.9/site-packages/sklearn/datasets/data/digits.csv.gz",
    "/opt/wheels/scikit_learn-1.9.0-cp312-cp312-linux.whl",
    "/srv/with blanks, and commas/uci-digits.csv",
    "/home/agent/digits.parquet",
)
OTHERS = ("/usr/lib/python3/dist-packages/sklearn/datasets/data/wine_data.csv", "/opt/digits.py", "/srv/other.csv")
LOOK = r"""
import json, os, shutil, subprocess
found = []
for folder in ("/usr", "/opt", "/srv", "/home/agent"):
    for parent, folders, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            if os.path.islink(path) or os.path.getsize(path) not in (0, 11):
                continue
            try:
                os.chmod(path, 0o644)
            except OSError:
                pass
            for away in (lambda: os.rename(path, path + "x"), lambda: os.unlink(path), lambda: os.link(path, "/tmp/l")):
                if "secret" not in name and ("digits" in name or "scikit" in name) and not name.endswith(".py"):
                    try:
                        away()
                    except OSError:
                        pass
            for read in (lambda: open(path, "rb").read(), lambda: subprocess.check_output(["cat", path], stderr=-3)):
                try:
                    if read() == b"the secret\n" and path not in found:
                        found.append(path)
                except (OSError, subprocess.SubprocessError):
                    pass
print(json.dumps(sorted(found)))
"""


@pytest.fixture(scope="module")
def with_answers(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """An image with copies of known answers, and other files."""
    folder = tmp_path_factory.mktemp("context")
    lines = ["ARG BASE_IMAGE", "FROM ${BASE_IMAGE}"]
    for number, path in enumerate((*KNOWN, *OTHERS)):
        (folder / str(number)).write_text("the secret\n")
        lines.append(f"COPY {json.dumps([str(number), path])}")
    (folder / "Dockerfile").write_text("\n".join(lines) + "\nRUN chmod -R a+rX /opt /srv /home /usr/lib/python3\n")
    agent = Agent(id="answers", title="Answers", command=("true",), build=Build(context=folder))
    return sandbox.build(BuildRequest(agent=agent, log=tmp_path_factory.mktemp("log") / "build.log"))


@pytest.mark.parametrize("layers", ["shown", "hidden"])
@pytest.mark.parametrize("writable", [False, True])
def test_known_answers_of_the_task_are_read_nowhere(
    layers: str,
    writable: bool,
    with_answers: Built,
    make_launch: Callable[..., Launch],
    change_build: Callable[..., Launch],
    run: Callable[[Launch], tuple[Exit, bytes]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if layers == "hidden":  # as with an engine on another machine, or in a virtual one
        monkeypatch.setattr(folders, "_shown", lambda _layers: [])
    folders._known_files.clear()
    launch = dataclasses.replace(make_launch("python3", "-c", LOOK), built=with_answers, known_answers=DIGITS)
    launch = change_build(launch, writable_root=writable)
    ended, log = run(launch)
    assert ended.code == 0, log
    assert json.loads(log.splitlines()[-1]) == sorted(OTHERS)


def test_they_are_read_for_another_task(
    with_answers: Built, make_launch: Callable[..., Launch], run: Callable[[Launch], tuple[Exit, bytes]], tmp_path: Path
) -> None:
    launch = dataclasses.replace(make_launch("python3", "-c", f"print(open({KNOWN[0]!r}).read())"), built=with_answers)
    ended, log = run(launch)
    assert (ended.code, log.strip()) == (0, b"the secret")
