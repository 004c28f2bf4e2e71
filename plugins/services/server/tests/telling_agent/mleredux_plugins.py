"""An agent that prints its key in pieces, and continues when the test has checked: it waits for files in its output."""

from __future__ import annotations

from collections.abc import Iterable

from mleredux.hookspecs import hookimpl
from mleredux.models import Agent, Limits

mleredux_contract = 2

CODE = """
import json, os, pathlib, shutil, sys, time

def say(data):
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()

def wait(name):
    while not pathlib.Path(name).exists():
        time.sleep(0.02)

key = os.environ["TELLING_KEY"].encode()
half = len(key) // 2
notes = open("notes.txt", "wb", buffering=0)
pathlib.Path("model.bin").write_bytes(bytes(range(256)) + key + bytes(range(256)))
notes.write(b"key: " + key[:half])
say(b"begun in " + os.environ["TELLING_PLACE"].encode() + b"\\nkey: " + key[:half])
wait("told-half")
notes.write(key[half:] + b" told\\n")
say(key[half:] + b" told\\n" + json.dumps({"key": key.decode()}).encode() + b"\\n")
wait("told")
data = pathlib.Path(os.environ["MLEREDUX_DATA_DIR"])
shutil.copyfile(data / "sample_submission.csv", os.environ["MLEREDUX_SUBMISSION"])
say(b"and again " + key[:3])
"""


@hookimpl
def mleredux_register_agents() -> Iterable[Agent]:
    """The agent."""
    return [
        Agent(
            id="telling",
            title="Prints its key",
            command=("python", "-c", CODE),
            limits=Limits(time_limit=300, cpus=0.5, memory_mb=256, disk_mb=100),
            secrets=("TELLING_KEY",),
            pass_env=("TELLING_PLACE",),
        )
    ]
