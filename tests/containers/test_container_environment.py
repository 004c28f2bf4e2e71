"""Every kind of agent gets what the reference promises, in every sandbox."""

from __future__ import annotations

import base64
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
PROBE = """
import getpass, json, os, pwd, pathlib, shutil, socket
home = pathlib.Path("~").expanduser()
(home / "written").touch()
prompt = pathlib.Path(os.environ["MLEREDUX_PROMPT_FILE"]).read_text()
task = pathlib.Path(os.environ["MLEREDUX_TASK_DIR"])
parts = [(task / name).read_text() for name in ("instructions.md", "description.md")]
found = {
    "environment": dict(os.environ), "host": socket.gethostbyname(socket.gethostname()), "user": getpass.getuser(),
    "entry": pwd.getpwuid(os.getuid()).pw_name, "prompt": all(part.strip() in prompt for part in parts),
    "options": json.loads(os.environ["MLEREDUX_OPTIONS"]),
}
pathlib.Path(os.environ["MLEREDUX_OUTPUT_DIR"], "found.json").write_text(json.dumps(found))
shutil.copy(os.environ["MLEREDUX_DATA_DIR"] + "/sample_submission.csv", os.environ["MLEREDUX_SUBMISSION"])
"""
START = f"import base64; exec(base64.b64decode({base64.b64encode(PROBE.encode()).decode()!r}))"
MANIFEST = f"""
[agent]
id = "prober"
command = ["python", "-c", {json.dumps(START)}]
[options]
model = "small"
"""
PLUGIN = f"""
from mleredux.plugin import hookimpl
from mleredux.plugin.agent import Agent

mleredux_contract = 2


@hookimpl
def mleredux_register_agents():
    command = ("python", "-c", {START!r})
    yield Agent(id="packaged", title="Probes", command=command, options={{"model": "small"}})
"""
KINDS = ("script", "notebook", "folder", "repository", "packaged", "command")


def make_agent(folder: Path, kind: str) -> list[str]:
    """The options of the command line that run an agent of a kind."""
    if kind == "script":
        (folder / "probe.py").write_text(PROBE)
        return ["--agent", "./probe.py"]
    if kind == "notebook":
        cell = {"cell_type": "code", "metadata": {}, "execution_count": None, "outputs": [], "source": PROBE}
        (folder / "probe.ipynb").write_text(json.dumps({"cells": [cell]}))
        return ["--agent", "./probe.ipynb"]
    if kind in ("folder", "repository"):
        (folder / "agent").mkdir()
        (folder / "agent" / "mleredux-agent.toml").write_text(MANIFEST)
    if kind == "repository":
        git = ["git", "-C", str(folder / "agent"), "-c", "user.name=a", "-c", "user.email=a@b.c"]
        for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"]):
            subprocess.run([*git, *arguments], check=True)
        return ["--agent", "./agent@HEAD", "-O", "model=other"]
    if kind == "command":
        return [
            "--agent",
            "command",
            "-O",
            f"command=python -c {shlex.quote(START)}",
            "-O",
            "model=small",
            "-O",
            "libraries=none",
        ]
    return ["--agent", "./agent" if kind == "folder" else "packaged"]


def run(folder: Path, kind: str, sandbox: str, *more: str) -> dict[str, object]:
    """What an agent of a kind finds in a sandbox."""
    (folder / "prober.py").write_text(PLUGIN)
    command = [sys.executable, "-m", "mleredux", "-p", str(folder / "prober.py"), "run", "wine", "--json"]
    command += ["--sandbox", sandbox, "--network", "none", "--seed", str(2**32 - 1), *make_agent(folder, kind), *more]
    env = dict(os.environ)
    if sandbox == "process":  # containers are built by the machine's own proxy
        env |= {"HTTPS_PROXY": "http://ada:secret-word@127.0.0.1:9", "no_proxy": "localhost"}
    ended = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=500, check=False)
    assert ended.stdout, ended.stderr
    record = json.loads(ended.stdout)
    logs = [path.read_text(errors="replace") for path in Path(record["path"], "logs").glob("*.log")]
    assert record["status"] == "done", "\n".join((str(record["message"]), ended.stderr, *logs))
    kept = [path for path in Path(record["path"]).rglob("*") if path.is_file() and b"secret-word" in path.read_bytes()]
    assert kept == []
    found: dict[str, object] = json.loads(Path(record["path"], "output", "found.json").read_text())
    return found


def check(found: dict[str, object], kind: str) -> None:
    environment = found["environment"]
    assert isinstance(environment, dict)
    paragraph = (REFERENCE / "plugins.md").read_text().partition("These variables are set:")[2].partition("\n\n")[0]
    documented = re.findall(r"`(MLEREDUX_\w+)`", paragraph)
    [row] = re.findall(r".*\| the run \|", (REFERENCE / "environment.md").read_text())
    documented += re.findall(r"`(MLEREDUX_\w+)`", row)
    assert len(documented) > 18 and [name for name in documented if name not in environment] == []
    model = "" if kind in ("script", "notebook") else "other" if kind == "repository" else "small"
    assert environment["MLEREDUX_MODEL"] == model and environment["MLEREDUX_SEED"] == "4294967295"
    assert found["prompt"] is True and environment["HOME"] and found["user"] and found["entry"]
    assert not [name for name in environment if "proxy" in name.lower()]


@pytest.mark.engines("docker", "podman")
@pytest.mark.parametrize("kind", KINDS)
def test_agents_get_what_is_promised_in_containers(
    engine: str, kind: str, tmp_path: Path, own_cache: Path, mleredux_home: Path
) -> None:
    found = run(tmp_path, kind, engine)
    check(found, kind)
    assert found["host"] == "127.0.0.1" and found["entry"] == found["user"] == "agent"


@pytest.mark.engines("apptainer")
@pytest.mark.parametrize("kind", ("script", "folder", "packaged"))
def test_agents_get_what_is_promised_in_apptainer(
    engine: str, kind: str, tmp_path: Path, own_cache: Path, mleredux_home: Path
) -> None:
    found = run(tmp_path, kind, engine)
    check(found, kind)
    assert found["host"] == "127.0.0.1" and found["entry"] == found["user"] == "agent"


@pytest.mark.parametrize("kind", KINDS)
def test_agents_get_what_is_promised_as_processes(
    kind: str, tmp_path: Path, own_cache: Path, mleredux_home: Path
) -> None:
    check(run(tmp_path, kind, "process"), kind)


def test_a_process_with_an_open_network_finds_the_callers_proxies(
    tmp_path: Path, own_cache: Path, mleredux_home: Path
) -> None:
    environment = run(tmp_path, "packaged", "process", "--network", "open")["environment"]
    assert isinstance(environment, dict)
    proxies = {name: value for name, value in environment.items() if "proxy" in name.lower()}
    assert proxies.keys() == {"https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY"}
    assert set(proxies.values()) == {f"http://ada:{'*' * len('secret-word')}@127.0.0.1:9", "localhost"}


@pytest.mark.parametrize("seed", [-1, 2**32, 10**30])
def test_seeds_that_libraries_refuse_are_one_sentence(seed: int, mleredux_home: Path) -> None:
    import mleredux
    from mleredux.errors import MlereduxError

    command = [sys.executable, "-m", "mleredux", "run", "wine", "--agent", "dummy", f"--seed={seed}"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2 and "0<=x<=4294967295" in ended.stderr
    with pytest.raises(MlereduxError, match="seeds must be integers from 0 to 4294967295"):
        mleredux.run("wine", "dummy", seed=seed, sandbox="process")
