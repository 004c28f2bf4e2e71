"""Run one of Harbor's tasks: the agent in the task's image, then the verifier in a separate container."""

from __future__ import annotations

import shutil
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from mleredux.models import Outcome
from mleredux.plugin.agent import Agent, Build, Launch, Session
from mleredux.plugin.files import remove_tree, write_atomically
from mleredux.plugin.host import run_in_sandbox
from mleredux.plugin.sandbox import BuildRequest, Sandbox

from mleredux_bridge_harbor.imported import artifacts_of, folder_of, read_config
from mleredux_bridge_harbor.reward import FILE, read_rewards, seal

_SOLUTION = "/tmp/.solution"
_OTHERS = " -o ".join(f"-path {path}" for path in ("/proc", "/sys", "/dev", "/output", "/task", "/tmp", "/mleredux"))
_WORK = rf"""
cd "$(cat /.harbor-workdir)" || exit 125
touch /tmp/.begun
"$@" &
child=$!
trap 'kill -TERM $child' TERM
wait $child; code=$?
while kill -0 $child 2>/dev/null; do wait $child; code=$?; done
{{ [ "$PWD" = / ] || echo "$PWD"; find / \( {_OTHERS} \) -prune -o -type f -newer /tmp/.begun -print 2>/dev/null; }} \
  | sort -u > /tmp/.changed
tar -cf /output/workspace.tar -T /tmp/.changed 2>/dev/null
exit $code
"""
"""Runs an agent in the working directory, and archives that directory and all files that changed elsewhere."""
_SOLVE = f"mkdir -p /solution; cp -r {_SOLUTION}/. /solution/; exec bash /solution/solve.sh"
_VERIFY = """
place=$(cat /.harbor-workdir); cd "$place" || exit 125
if [ "$1" = shared ]; then
  [ "$place" = / ] || find . -mindepth 1 -delete 2>/dev/null
  tar -xf /task/data/workspace.tar -C / 2>/dev/null
  cp -r /task/tests/. /tests/
else
  shift
  tar -xf /task/data/workspace.tar -C / "$@" 2>/dev/null
fi
rm -rf /logs/verifier/*
bash -c 'bash /tests/test.sh < /dev/null > >(head -c 262144 | head -n 4000; exec cat > /dev/null) 2>&1'
cp /logs/verifier/reward.json /logs/verifier/reward.txt /output/ 2>/dev/null
exit 0
"""
_POLL = 0.2


def run(launch: Launch, session: Session, sandbox: Sandbox, task: str) -> Outcome:
    """Run the agent, then the verifier, whose reward becomes the submission.

    Raises:
        BuildFailed: The image of a separate verifier can't be built.
        SandboxError: The environment failed.
    """
    home = folder_of(task)
    command = launch.command
    if "answers" in launch.agent.needs:
        shutil.copytree(home / "solution", launch.scratch_dir / Path(_SOLUTION).name, dirs_exist_ok=True)
        command = ("sh", "-c", _SOLVE)
    outcome = run_in_sandbox(replace(launch, command=("sh", "-c", _WORK, "work", *command)), session, sandbox)
    if outcome.cause is None or outcome.cause.value != "cancelled":
        rewards, message = _verify(launch, session, sandbox, home)
        _remove(launch.output_dir / FILE)
        write_atomically(launch.output_dir / FILE, seal(task, rewards, message).encode())
    return outcome


def _remove(path: Path) -> None:
    """Remove an agent's output file, link, or folder."""
    if path.is_dir() and not path.is_symlink():
        remove_tree(path)
    else:
        path.unlink(missing_ok=True)


def _verify(
    launch: Launch, session: Session, sandbox: Sandbox, home: Path
) -> tuple[dict[str, float] | None, str | None]:
    """Run the verifier with the agent's limits and without network; return its rewards or an error message."""
    config = read_config(home)
    verifier: dict[str, Any] = config.get("verifier", {})
    separate = verifier.get("environment_mode") == "separate"
    for left in list(launch.scratch_dir.iterdir()):
        _remove(left)
    # On the run's limited disk, and removed together with the agent's scratch files.
    task, output, scratch = (launch.scratch_dir / name for name in ("task", "output", "scratch"))
    for folder in (task / "data", output, scratch):
        folder.mkdir(parents=True)
    words = ["separate", *(path.strip("/") for path in artifacts_of(config))] if separate else ["shared"]
    if not separate:
        shutil.copytree(home / "tests", task / "tests")
    build, built = launch.agent.build, launch.built
    if separate:
        build = Build(context=home / "tests", dockerfile=".harbor.Dockerfile", writable_root=True)
        agent = Agent(id="verifier", title="Verifier", command=("true",), build=build, isolated=True)
        request = BuildRequest(agent, launch.control_dir / "verifier-build.log", hosts=(), cancelled=session.cancelled)
        built = sandbox.build(request)
    launch = replace(
        launch,
        agent=Agent(id="verifier", title="Verifier", command=("true",), build=build, isolated=True),
        built=built,
        command=("sh", "-c", _VERIFY, "verify", *words),
        network="none",
        task_dir=task,
        data_dir=launch.output_dir,
        output_dir=output,
        scratch_dir=scratch,
        log=launch.control_dir / "verifier.log",
        env={str(name): str(value) for name, value in verifier.get("env", {}).items()},
        gateway_socket=None,
        gateway_url="",
        proxy_socket=None,
    )
    launch.log.touch()
    until = time.monotonic() + verifier.get("timeout_sec", 600)
    with closing(sandbox.start(launch)) as handle:
        while handle.poll() is None:
            if time.monotonic() > until or session.cancelled():
                handle.kill()
                return None, "The verifier reached its time limit."
            time.sleep(_POLL)
    return read_rewards(output)
