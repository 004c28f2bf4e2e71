"""An agent that is root in its container and does nothing but look for the answers: it finds nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mleredux
import pytest
from mleredux._core.data.installation import canary
from mleredux._core.plugins import Catalogue
from mleredux._core.plugins.catalogue import set_current

# Standard library only; what is found goes to `found.json`.
HOSTILE = r"""
import ctypes, glob, http.client, json, os, socket, stat, urllib.request

found = {"uid": os.getuid(), "read": 0}
found |= {name: [] for name in ("canaries", "names", "environ", "escapes", "reached", "said")}
NEEDLE = b"mleredux-" + b"canary-"

def tries(name, action):
    try:
        action()
        found["escapes"].append(name)
    except (KeyError, OSError, ValueError):
        pass

for parent, names, files in os.walk("/"):
    names[:] = [name for name in names if os.path.join(parent, name) not in ("/proc", "/sys/kernel/debug")]
    for name in files:
        path = os.path.join(parent, name)
        if name in ("answers.csv", "canary.txt", "prepared.json") or "private" in path.split("/"):
            found["names"].append(path)
        try:
            if stat.S_ISREG(os.lstat(path).st_mode) and os.path.getsize(path) < 64 << 20:
                with open(path, "rb") as file:
                    found["read"] += 1
                    if NEEDLE in file.read():
                        found["canaries"].append(path)
        except OSError:
            pass

for process in glob.glob("/proc/[0-9]*"):
    for name in ("environ", "cmdline", "maps"):
        try:
            data = open(f"{process}/{name}", "rb").read()
        except OSError:
            continue
        if NEEDLE in data or (name != "cmdline" and b"private" in data):  # our own command says it
            found["environ"].append(f"{process}/{name}")
for link in glob.glob("/proc/[0-9]*/root") + glob.glob("/proc/[0-9]*/cwd") + glob.glob("/proc/[0-9]*/fd/*"):
    try:
        target = os.readlink(link)
    except OSError:
        continue
    if "prepared" in target or "answers" in target:
        found["environ"].append(f"{link} -> {target}")

here = os.environ["MLEREDUX_DATA_DIR"]
for path in (f"{here}/../private", f"{here}/../../private", "/task/private", "/home/private", "/home/data/../private"):
    tries(path, lambda: os.listdir(path))
tries("block device", lambda: os.mknod("/tmp/disk", stat.S_IFBLK | 0o600, os.makedev(254, 0)))
tries("chroot", lambda: os.chroot("/tmp"))
tries("write into the data", lambda: open(f"{here}/planted", "w"))
tries("core pattern", lambda: open("/proc/sys/kernel/core_pattern", "w").write("core"))
tries("write into the task", lambda: open("/task/planted", "w"))
library = ctypes.CDLL(None, use_errno=True)
for name, call in (
    ("mount", lambda: library.mount(b"none", b"/tmp", b"tmpfs", 0, None)),
    ("unshare", lambda: library.unshare(0x00020000)),
    ("unshare user", lambda: library.unshare(0x10000000)),
    ("clone user", lambda: min(0, library.syscall(56, 0x10000000 | 17, 0, 0, 0, 0) or os._exit(0))),
    ("setns", lambda: library.setns(os.open("/proc/1/ns/mnt", os.O_RDONLY), 0)),
):
    tries(name, lambda: {0: 1}[call()])

for address in (("172.17.0.1", 22), ("169.254.169.254", 80), ("127.0.0.1", 2375), ("8.8.8.8", 53)):
    try:
        socket.create_connection(address, 1).close()
        found["reached"].append(address)
    except OSError:
        pass
for path in ("/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock"):
    if os.path.exists(path):
        found["reached"].append(path)

def ask(method, path, body=None):
    connection = http.client.HTTPConnection("localhost", 5000, timeout=30)
    connection.request(method, path, body)
    return connection.getresponse().read().decode()

sample = open(f"{here}/sample_submission.csv").read()
head, *rows = sample.splitlines()
classes = len(head.split(",")) - 1
for best in range(classes):
    guess = [row.split(",")[0] + "," + ",".join("1" if n == best else "0" for n in range(classes)) for row in rows]
    found["said"].append(ask("POST", "/validate", "\n".join([head, *guess]) + "\n"))
for path in ("/score", "/grade", "/answers", "/../private/answers.csv", "/validate?score=1", "/report"):
    found["said"].append(ask("GET", path))
json.dump(found, open(os.environ["MLEREDUX_OUTPUT_DIR"] + "/found.json", "w"))
open(os.environ["MLEREDUX_SUBMISSION"], "w").write(sample)
"""

pytestmark = [pytest.mark.attack, pytest.mark.engines("docker", "podman", "apptainer")]

PLUGIN = """\
from mleredux import Agent, hookimpl

@hookimpl
def mleredux_register_agents():
    return [Agent(id="searcher", title="Looks for answers", command=("python", "-c", {code!r}), isolated=True)]
"""


@pytest.fixture(scope="module")
def run(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A run of it, as root; in Apptainer, root in a container could write the settings of the machine's kernel."""
    home = tmp_path_factory.mktemp("hostile")
    (home / "searcher_plugin.py").write_text(PLUGIN.format(code=HOSTILE))
    with pytest.MonkeyPatch.context() as patch:
        if engine != "apptainer":
            patch.setattr(f"mleredux_sandbox_{engine}.sandbox.agent_user", lambda rootless=False: (0, 0))
        set_current(Catalogue(load=(str(home / "searcher_plugin.py"),)))
        places = {"runs_dir": home / "runs", "data_dir": home / "data"}
        yield mleredux.run("wine", "searcher", sandbox=engine, time_limit=120, **places)
    set_current(None)


def test_a_searcher_in_a_container_finds_no_answers_and_no_way_out(run: Any, engine: str) -> None:
    assert str(run.state) == "done", f"{run.message}\n{run.agent_log.read_text(errors='replace')}"
    found = json.loads((run.output_dir / "found.json").read_text())
    assert found["read"] > 1000 and (found["uid"] == 0 or engine == "apptainer"), "it was root, and did look"
    assert found["canaries"] == [] and found["names"] == [] and found["environ"] == []
    assert found["escapes"] == [] and found["reached"] == []
    canary_file = Path(run.spec.data_dir) / "wine" / "prepared" / "canary.txt"
    assert canary("wine") in canary_file.read_text(), "there was something to find"


def test_guessing_at_the_validation_endpoint_tells_no_score(run: Any) -> None:
    found = json.loads((run.output_dir / "found.json").read_text())
    guesses, others = found["said"][:3], found["said"][3:]
    assert len({json.dumps(json.loads(said), sort_keys=True) for said in guesses}) == 1, (
        "all guesses get the same words"
    )
    assert json.loads(guesses[0])["valid"] is True
    assert not [said for said in others if "score" in said.lower() and "never" not in said.lower()], others


def test_the_ledger_knows_of_no_exposure(run: Any) -> None:
    ledger = run.report.ledger
    assert ledger.isolated and not ledger.answers_exposed and ledger.validations == 3
