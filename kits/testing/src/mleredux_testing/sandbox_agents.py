"""Agents that run in a sandbox during its check: programs for `python -c` that use only the standard library."""

PROBE = """
import json, os, pathlib, socket, subprocess, sys, tempfile, urllib.request
env = dict(os.environ)
task, data, out = (pathlib.Path(env[f"MLEREDUX_{name}_DIR"]) for name in ("TASK", "DATA", "OUTPUT"))
options = json.loads(env["MLEREDUX_OPTIONS"])
sys.stdout.buffer.write(b"out \\xff\\xfe\\x00 out\\n"); sys.stdout.buffer.flush()
sys.stderr.buffer.write(b"err \\xc3\\x28 err\\n"); sys.stderr.buffer.flush()
found = {"env": env, "cwd": os.path.realpath("."), "output": os.path.realpath(out)}

def attempt(name, action):
    try:
        found[name] = action()
    except Exception as error:  # the test inspects what was refused, and how
        found[name] = f"{type(error).__name__}: {error}"

def write(path):
    path.write_text("changed")
    return "written"

def reach(address):
    with socket.create_connection(tuple(address), timeout=3):
        return "reached"

def listen():
    with tempfile.TemporaryDirectory(prefix="pymp-") as folder, socket.socket(socket.AF_UNIX) as server:
        server.bind(folder + "/listener-" + 8 * "x")  # as multiprocessing does
        return "listens"

def ask(body):
    request = urllib.request.Request(env["MLEREDUX_VALIDATE_URL"], data=body, method="POST")
    request.add_header("Content-Type", "application/octet-stream")
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read())

sample = (data / "sample_submission.csv").read_bytes()
attempt("task.json", lambda: json.loads((task / "task.json").read_text())["file"])
attempt("mounts", lambda: pathlib.Path("/proc/self/mountinfo").read_text())
attempt("description", lambda: len((task / "description.md").read_text()))
attempt("write task", lambda: write(task / "description.md"))
attempt("write data", lambda: write(data / "train.csv"))
attempt("write scratch", lambda: write(pathlib.Path(env["MLEREDUX_SCRATCH_DIR"]) / "file"))
attempt("listen", listen)
attempt("answers", lambda: "seen" if os.path.exists(options["answers"]) else "unseen")
attempt("host", lambda: [reach(address) for address in options["addresses"]])
pathlib.Path(env["MLEREDUX_SUBMISSION"]).write_bytes(sample)
attempt("validate file", lambda: ask(b""))
attempt("validate body", lambda: ask(b"id\\n1\\n"))
attempt("validate.sh", lambda: json.loads(
    subprocess.run(["sh", str(task / "validate.sh")], capture_output=True, timeout=60, check=True).stdout))
(out / "probe.json").write_text(json.dumps(found))
sys.exit(7)
"""
"""Inspects its environment, writes the results to `probe.json`, and exits with code 7."""

POLITE = """
import os, pathlib, signal, sys, time
def stop(number, frame):
    pathlib.Path("stopped").write_text("asked to stop")
    sys.exit(5)
signal.signal(signal.SIGTERM, stop)
pathlib.Path("ready").write_text("ready")
while True:
    time.sleep(0.05)
"""
"""Waits for SIGTERM, then exits with code 5."""

STUBBORN = """
import os, pathlib, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
while True:
    pathlib.Path(f"beat-{os.getpid()}").write_text(str(time.time()))
    pathlib.Path("ready").write_text("ready")
    time.sleep(0.05)
"""
"""Ignores SIGTERM, as does its child in a separate session; both write a heartbeat."""

HUNGRY = """
import time
held = []
while True:
    held.append(bytearray(b"x") * (16 << 20))
    time.sleep(0.02)
"""
"""Uses more and more memory."""

HUNGRY_CHILD = f"import os, time\nif os.fork():\n    time.sleep(600)\n{HUNGRY}"
"""Waits for a child that uses more and more memory."""

CROWD = """
import os, time
made = 0
while made < 60:
    try:
        child = os.fork()
    except OSError:
        break
    if child == 0:
        time.sleep(30)
        os._exit(0)
    made += 1
    with open("made", "a") as file:
        file.write(".")
    time.sleep(0.02)
time.sleep(3)
"""
"""Starts up to sixty processes, as many as it can, and writes a dot for each."""

GLUTTON = """
import time
with open("large", "wb") as file:
    for _ in range(64):
        file.write(b"x" * (1 << 20))
        file.flush()
        time.sleep(0.05)
time.sleep(3)
"""
"""Writes 64 blocks of a mebibyte, with a pause of a twentieth of a second after each."""

HIDDEN = """
import os, time
held = []
try:
    while True:
        for name in ("OUTPUT", "SCRATCH"):
            held.append(open(os.environ[f"MLEREDUX_{name}_DIR"] + "/hidden", "wb", buffering=0))
            os.unlink(held[-1].name)
            held[-1].write(os.urandom(1 << 20))
except OSError:
    time.sleep(20)
"""
"""Writes unnamed files to both folders until there is no room."""
