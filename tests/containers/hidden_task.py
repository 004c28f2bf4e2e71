"""A plugin for tests: a task with a telling name, and an agent that reads all that it can."""

from __future__ import annotations

from mleredux.hookspecs import hookimpl
from mleredux.models import Agent, Task
from mleredux_testing.toys import toy_task

mleredux_contract = 2

_READ_ALL = """
import os, pathlib, shutil, socket, stat, subprocess, sys, urllib.request
out, env = pathlib.Path(os.environ["MLEREDUX_OUTPUT_DIR"]), dict(os.environ)
seen = open(out / "seen", "wb")
def tell(*things):
    seen.write(b"\\n".join(os.fsencode(thing) if isinstance(thing, str) else thing for thing in things) + b"\\n")
tell(socket.gethostname(), str(env), os.getcwd(), *sys.argv)
places = ["/proc/self", "/proc/1", "/proc/mounts", *(env[name] for name in env if name.endswith("_DIR"))]
if os.path.isdir("/mleredux"):
    places += ["/mleredux", "/etc", "/run", "/home", "/tmp", "/var", "/dev/shm", "/sys/block", "/sys/fs/ext4"]
    places += [f"/sys/block/{name}/loop" for name in os.listdir("/sys/block")]
for place in places:
    for folder, folders, files in os.walk(place):
        tell(folder, *folders)
        if folder.startswith("/proc") and folder.count("/") > 2:
            folders[:] = []
        for name in [*folders, *files]:
            path = os.path.join(folder, name)
            try:
                tell(path, os.path.realpath(path), str(os.lstat(path)))
                if stat.S_ISREG(os.stat(path).st_mode) and name not in ("seen", "kmsg", "pagemap", "clear_refs"):
                    with open(path, "rb") as file:
                        tell(file.read(1 << 20))
            except OSError as error:
                tell(str(error))
    if os.path.isfile(place):
        tell(pathlib.Path(place).read_bytes())
shutil.copyfile(env["MLEREDUX_DATA_DIR"] + "/sample_submission.csv", env["MLEREDUX_SUBMISSION"])
tell(subprocess.run(["sh", env["MLEREDUX_TASK_DIR"] + "/validate.sh"], capture_output=True).stdout)
for path, body in (("/validate", b"id\\n1\\n"), ("/quark", None), ("/time", None), ("/health", None)):
    try:
        tell(urllib.request.urlopen(env["MLEREDUX_VALIDATE_URL"].replace("/validate", path), body).read())
    except OSError as error:
        tell(str(error), getattr(error, "fp", None) and error.read() or b"")
"""


@hookimpl
def mleredux_register_tasks() -> list[Task]:
    """The toy task under a name that is found."""
    return [toy_task.model_copy(update={"id": "quetzal-nesting", "title": "Nests of the resplendent quetzal"})]


@hookimpl
def mleredux_register_agents() -> list[Agent]:
    """The agent."""
    return [Agent(id="reader", title="Reads everything", command=("python", "-c", _READ_ALL))]
