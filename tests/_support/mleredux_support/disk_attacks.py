"""Agents that try to use more of the host's disk than their limit, each in a different way.

`mleredux -p mleredux_testing.toys -p mleredux_support.disk_attacks run toy --agent disk-unlinked --disk 48m` runs one.
Each writes a valid submission first.
"""

from __future__ import annotations

from mleredux.hookspecs import hookimpl
from mleredux.models import Agent, Build, Limits

mleredux_contract = 2

DISK_ATTACKS_PLUGIN = "mleredux_support.disk_attacks"

_START = """
import ctypes, mmap, os, shutil, sys, threading, time, urllib.request
out, scratch = os.environ["MLEREDUX_OUTPUT_DIR"], os.environ["MLEREDUX_SCRATCH_DIR"]
shutil.copyfile(os.environ["MLEREDUX_DATA_DIR"] + "/sample_submission.csv", os.environ["MLEREDUX_SUBMISSION"])
time.sleep(1.5)
block, kept = os.urandom(1 << 20), []

def fill(path, most=1 << 10):
    with open(path, "wb", buffering=0) as file:
        for _ in range(most):
            file.write(block)

def forever(action):
    number = 0
    try:
        while True:
            action(number)
            number += 1
    except OSError as error:
        print(error, flush=True)
    time.sleep(20)
"""

FILLING = {
    "unlinked": """
def write(number):
    file = open(f"{(out, scratch)[number % 2]}/{number}", "w+b", buffering=0)
    os.unlink(file.name)
    kept.append(file)
    for _ in range(4):
        file.write(block)
forever(write)
""",
    "deep": """
os.chdir(out)
for _ in range(25):
    os.mkdir("d" * 200)
    os.chdir("d" * 200)
forever(lambda number: fill("file"))
""",
    "folders": """
forever(lambda number: os.mkdir(f"{out}/{number}"))
""",
    "names": """
forever(lambda number: (os.mkfifo(f"{out}/{number}f"), os.symlink("x" * 1000, f"{scratch}/{number}")))
""",
    "modes": """
os.mkdir(f"{out}/shut")
os.chdir(f"{out}/shut")
file = open("file", "wb", buffering=0)
os.chmod("file", 0)
os.chmod(f"{out}/shut", 0o300)
forever(lambda number: file.write(block))
""",
    "uploads": """
def upload():
    def body():
        for _ in range(96):
            yield block
    request = urllib.request.Request(os.environ["MLEREDUX_VALIDATE_URL"], data=body(), method="POST")
    request.add_header("Content-Length", str(96 << 20))
    request.add_header("Content-Type", "text/csv")
    try:
        urllib.request.urlopen(request, timeout=60)
    except OSError as error:
        print(error, flush=True)
for _ in range(4):
    threading.Thread(target=upload).start()
time.sleep(20)
""",
    "scratch": """
forever(lambda number: fill(f"{os.path.expanduser('~')}/file"))
""",
    "mapped": """
for number in range(3):
    file = open(f"{out}/{number}", "w+b")
    os.ftruncate(file.fileno(), 40 << 20)
    os.unlink(file.name)
    kept.append(file)
    if os.fork() == 0:
        view = mmap.mmap(file.fileno(), 0)
        for place in range(0, 40 << 20, 1 << 20):
            view[place : place + (1 << 20)] = block
        os._exit(0)
time.sleep(20)
""",
    "output": """
forever(lambda number: os.write(1, block))
""",
    "attributes": """
def write(number):
    open(f"{out}/{number}", "w").close()
    os.setxattr(f"{out}/{number}", "user.x", block[:3500])
forever(write)
""",
    "root": """
forever(lambda number: fill("/var/tmp/file"))
""",
    "allocated": """
file = open(f"{out}/large", "wb")
os.unlink(file.name)
forever(lambda number: os.posix_fallocate(file.fileno(), number << 16, 1 << 16))
""",
}
"""Programs that use up their disk, whatever its size."""

HIDING = {
    "sparse": """
for number in range(3):
    with open(os.environ["MLEREDUX_SUBMISSION"], "r+b") as file:
        os.ftruncate(file.fileno(), (40 << 20) + number)
    time.sleep(2.2)
shutil.copyfile(os.environ["MLEREDUX_DATA_DIR"] + "/sample_submission.csv", os.environ["MLEREDUX_SUBMISSION"])
for number in range(50):
    with open(f"{out}/{number}", "wb") as file:
        os.ftruncate(file.fileno(), 40 << 20)
        os.pwrite(file.fileno(), b"x", 20 << 20)
""",
    "core": """
import resource
for number in range(4):
    if os.fork() == 0:
        os.chdir(out)
        kept.append(bytearray(block * 24))
        os.abort()
time.sleep(1)
""",
    "memory": """
if os.path.isdir("/dev/shm"):
    with open("/dev/shm/file", "wb", buffering=0) as file:
        for _ in range(40):
            file.write(block)
""",
}
"""Programs that seem to use much disk space, or use another resource, and end by themselves."""


@hookimpl
def mleredux_register_agents() -> list[Agent]:
    """Return an agent for each program."""
    return [
        Agent(
            id=f"disk-{name}",
            title=f"Takes disk: {name}",
            command=("python", "-c", _START + program),
            build=Build(writable_root=name == "root"),
            limits=Limits(time_limit=60, memory_mb=256, cpus=0.5, disk_mb=48),
        )
        for name, program in {**FILLING, **HIDING}.items()
    ]
