"""Started with `python -I -S launcher.py CONTROL_DIR`: sets limits, starts the agent, outlives whoever started it.

It becomes the parent of everything the agent leaves behind (a subreaper), ends all of that when the agent's main
process ends, and writes how that ended to `exit.json`, so that a run is not lost when the program that supervises it is
killed. It imports nothing but the standard library.
"""

import ctypes
import json
import os
import resource
import signal
import sys

PR_SET_CHILD_SUBREAPER = 36


def main(control: str) -> int:
    """Run the agent of `CONTROL_DIR/launch.json` to its end."""
    with open(os.path.join(control, "launch.json"), encoding="utf-8") as file:
        launch = json.load(file)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for name, limit in launch["limits"].items():
        number = getattr(resource, name, None)
        if number is not None:
            hard = resource.getrlimit(number)[1]
            limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
            resource.setrlimit(number, (limit, limit))
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        os.chdir(launch["cwd"])
        try:
            os.execvp(launch["command"][0], launch["command"])
        except OSError as error:
            sys.stderr.write(f"{launch['command'][0]}: {error.strerror}\n")
            sys.stderr.flush()
            os._exit(127)

    def forward(number: int, _frame: object) -> None:
        try:
            os.killpg(child, number)
        except OSError:
            os.kill(child, number)

    signal.signal(signal.SIGTERM, forward)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    status = wait_for(child)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    end_all_children()
    code = os.waitstatus_to_exitcode(status)
    temporary = os.path.join(control, ".exit.json")
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump({"code": code if code >= 0 else None, "signal": -code if code < 0 else None}, file)
    os.replace(temporary, os.path.join(control, "exit.json"))
    return 0


def wait_for(child: int) -> int:
    """Reap whatever ends until the main process does; its status."""
    while True:
        pid, status = os.wait()
        if pid == child:
            return status


def end_all_children() -> None:
    """Kill what is left, generation by generation: orphans become our children as their parents end."""
    while True:
        for pid in children():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        try:
            os.wait()
        except ChildProcessError:
            return


def children() -> list[int]:
    """Process ids of our children."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            return [int(pid) for pid in file.read().split()]
    except OSError:
        return []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
