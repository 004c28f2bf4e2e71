"""Started with `python -I -S launcher.py CONTROL_DIR`: sets limits, starts the agent, outlives its parent.

If `launch.json` names a parent, as for sessions, it ends the agent when that process is killed: with SIGTERM, and with
SIGKILL after the grace period.

It becomes the parent of all orphaned processes of the agent (a subreaper), ends them when the agent's main process
ends, and writes its exit status to `exit.json`, so that a run is not lost when the program that supervises it is
killed. It imports nothing but the standard library.
"""

import ctypes
import json
import os
import resource
import signal
import sys
import time

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
LIBC = ctypes.CDLL(None)
AWAITED = {signal.SIGTERM, signal.SIGUSR1}
LISTED = os.path.exists(f"/proc/self/task/{os.getpid()}/children")


def main(control: str) -> int:
    """Run the agent of `CONTROL_DIR/launch.json` until it ends."""
    with open(os.path.join(control, "launch.json"), encoding="utf-8") as file:
        launch = json.load(file)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    restrict(launch["limits"])
    child = writer = 0
    pipe = os.pipe() if launch.get("pipe") else None
    if pipe:
        writer = os.fork()
        if writer == 0:
            os.close(pipe[1])
            write_log(pipe[0])
        os.close(pipe[0])

    def forward(number: int, _frame: object) -> None:
        if not child:
            sys.exit(128 + number)  # nothing has been started yet
        # The child creates the group a moment after it starts; a container's program passes signals on.
        for send in (os.kill,) if pipe else (os.killpg, os.kill):
            try:
                send(child, number)
                return
            except OSError:
                pass

    def is_abandoned(_number: int, _frame: object) -> None:
        # This signal also arrives when the thread that started us ends, but its program does not.
        if os.getppid() == launch["parent"]:
            return
        signal.signal(signal.SIGALRM, lambda *_: os.kill(child, signal.SIGKILL))
        signal.setitimer(signal.ITIMER_REAL, max(launch["grace"], 0.01))
        forward(signal.SIGTERM, None)

    signal.signal(signal.SIGTERM, forward)
    signal.signal(signal.SIGUSR1, is_abandoned)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    if launch.get("parent") is not None and sys.platform == "linux":
        prctl(PR_SET_PDEATHSIG, signal.SIGUSR1)
        if os.getppid() != launch["parent"]:
            return 1
    # Between the fork and the recording of the process id, signals wait.
    signal.pthread_sigmask(signal.SIG_BLOCK, AWAITED)
    child = os.fork()
    if child == 0:
        if pipe:
            os.dup2(pipe[1], 1)
            os.dup2(pipe[1], 2)
        start(launch["command"], launch["cwd"])
    if pipe:
        os.close(pipe[1])
    signal.pthread_sigmask(signal.SIG_UNBLOCK, AWAITED)
    status = wait_for(child)
    for number in (*AWAITED, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)
    try:
        os.killpg(child, signal.SIGKILL)
    except OSError:
        pass
    end_all(writer)
    code = os.waitstatus_to_exitcode(status)
    temporary = os.path.join(control, ".exit.json")
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump({"code": code if code >= 0 else None, "signal": -code if code < 0 else None}, file)
    os.replace(temporary, os.path.join(control, "exit.json"))
    return 0


def prctl(option: int, value: int) -> None:
    """Change an attribute of this process, on Linux only."""
    if sys.platform == "linux":
        LIBC.prctl(option, value, 0, 0, 0)


def restrict(limits: dict[str, int]) -> None:
    """Limit the resources of this process and all that it starts."""
    for name, limit in limits.items():
        number = getattr(resource, name, None)
        if number is not None:
            hard = resource.getrlimit(number)[1]
            limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
            resource.setrlimit(number, (limit, limit))


def start(command: list[str], folder: str) -> None:
    """Become the agent, in the child process."""
    try:
        os.setpgid(0, 0)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, AWAITED)
        os.chdir(folder)
        os.execvp(command[0], command)
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        sys.stderr.flush()
    finally:
        os._exit(127)


def write_log(pipe: int) -> None:
    """Write everything from a pipe to the log, in the child process; continue reading if the disk is full."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    while data := os.read(pipe, 1 << 16):
        try:
            while data:
                data = data[os.write(1, data) :]
        except OSError:
            pass  # otherwise the agent's next line would end it
    os._exit(0)


def wait_for(child: int) -> int:
    """Reap all children until the main process ends, and return its status."""
    while True:
        pid, status = os.wait()
        if pid == child:
            return status


def end_all(writer: int = 0) -> None:
    """Kill all descendants; orphans become our children when their parents end.

    All are stopped first, until no new ones appear, so that none forks faster than it is killed. The log writer ends
    on its own when it has read everything.
    """
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        stopped = {writer}
        while stop_below(os.getpid(), stopped):
            continue
        send_all(stopped - {writer}, signal.SIGKILL)
        if sys.platform != "linux":
            return
        time.sleep(0.005)


def send_all(pids: set[int], number: int, root: int = 0) -> None:
    """Send a signal to several processes, and first to their process groups, so that no fork escapes it.

    The groups of this process and of the root, their ancestor, are excepted.
    """
    sent = {os.getpgrp(), root}
    for pid in pids:
        try:
            if (group := os.getpgid(pid)) not in sent:
                sent.add(group)
                os.killpg(group, number)
            os.kill(pid, number)
        except OSError:
            pass


def stop_below(root: int, stopped: set[int]) -> bool:
    """Stop the other descendants of a process, each before its children are listed; return whether there were any."""
    before, left = len(stopped), [root]
    while left:
        new = children(left.pop())
        left += new
        send_all(new - stopped, signal.SIGSTOP, root)
        stopped |= new
    return len(stopped) > before


def children(pid: int) -> set[int]:
    """Return the process ids of children, from the kernel's lists or, if it has none, the table of all processes."""
    folder, kind = (f"/proc/{pid}/task", "children") if LISTED else ("/proc", "stat")
    pids: set[int] = set()
    for name in os.listdir(folder) if os.path.exists(folder) else ():
        try:
            with open(f"{folder}/{name}/{kind}", "rb") as file:
                content = file.read()
            if LISTED:
                pids.update(map(int, content.split()))
            elif int(content.rpartition(b")")[2].split()[1]) == pid:
                pids.add(int(name))
        except (OSError, ValueError):
            continue  # it has ended, or is not a process
    return pids


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
