"""A Slurm cluster of the tests' own: a controller and several nodes on this machine, from Debian's packages."""

from __future__ import annotations

import contextlib
import getpass
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import psutil

from mleredux_support.ports import free_port

_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin"
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random")
_CONF = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket,cred_expire=5
CredType=cred/munge
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
SlurmdTimeout=5
KillWait=2
MinJobAge=120
GresTypes=gpu
JobRequeue=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmdParameters=config_overrides
PartitionName=low Nodes=ALL Default=YES PriorityTier=1 State=UP
PartitionName=high Nodes=ALL PriorityTier=10 State=UP
"""


def has_slurm() -> bool:
    """Whether the programs are installed."""
    return all(shutil.which(name, path=_PATH) for name in ("munged", "slurmctld", "slurmd", "sbatch"))


class SlurmCluster:
    """A cluster in a folder of its own, on ports of the loopback; used as a context manager.

    The commands find it by `SLURM_CONF`. Its two partitions are `low`, the default, and `high`, which preempts it.

    Args:
        nodes: Number of nodes `n1`, `n2`, …
        cpus: CPUs of each, whatever the machine has.
        memory_mb: Memory of each.
        gpus: GPUs of each, at most 4; in their place are devices that every machine has.

    Attributes:
        env: The variables of programs that use it.
    """

    def __init__(self, nodes: int = 4, *, cpus: int = 2, memory_mb: int = 4000, gpus: int = 2) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="mleredux-slurm-"))
        self.nodes = tuple(f"n{number + 1}" for number in range(nodes))
        self.env = {"SLURM_CONF": str(self.folder / "slurm.conf")}
        host = socket.gethostname().partition(".")[0]
        conf = _CONF.format(host=host, port=free_port(), folder=self.folder, user=getpass.getuser())
        gres = []
        for name in self.nodes:
            (self.folder / name).mkdir()
            conf += f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={free_port()} "
            conf += f"CPUs={cpus} RealMemory={memory_mb} Gres=gpu:{gpus}\n"
            gres += [f"NodeName={name} Name=gpu File={device}\n" for device in _DEVICES[:gpus]]
        for folder in ("munge", "state"):
            (self.folder / folder).mkdir()
        self.folder.chmod(0o755)
        (self.folder / "slurm.conf").write_text(conf)
        (self.folder / "gres.conf").write_text("".join(gres))
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")

    def __enter__(self) -> SlurmCluster:
        munge = self.folder / "munge"
        (munge / "key").write_bytes(secrets.token_bytes(1024))
        (munge / "key").chmod(0o600)
        files = {"socket": "socket", "key-file": "key", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
        self._start("munged", "--force", *(f"--{option}={munge / name}" for option, name in files.items()))
        self.start_controller()
        for name in self.nodes:
            self.start_node(name)
        end = time.monotonic() + 60
        while self.command("sinfo", "--noheader", "--partition=low", "--format=%T %D").split() != [
            "idle",
            str(len(self.nodes)),
        ]:
            assert time.monotonic() < end, (self.folder / "slurmctld.log").read_text()[-2000:]
            time.sleep(0.2)
        return self

    def __exit__(self, *_exception: object) -> None:
        self.command("scancel", "--full", "--signal=KILL", f"--user={getpass.getuser()}")
        for name in self.nodes:
            self.kill_node(name)
        self._kill(self.folder / "slurmctld.pid")
        self._kill(self.folder / "munge" / "pid")
        shutil.rmtree(self.folder, ignore_errors=True)

    def command(self, *words: str) -> str:
        """The standard output of one of Slurm's commands."""
        done = subprocess.run(words, env={**os.environ, **self.env}, capture_output=True, text=True, timeout=60)
        return done.stdout

    def succeeds(self, *words: str) -> bool:
        """Whether one of Slurm's commands succeeds."""
        done = subprocess.run(words, env={**os.environ, **self.env}, capture_output=True, timeout=60)
        return done.returncode == 0

    def fill(self, partition: str) -> None:
        """Take all nodes, as another user does."""
        words = (f"--partition={partition}", f"--nodes={len(self.nodes)}", "--exclusive", "--output=/dev/null")
        assert self.command("sbatch", "--job-name=other", *words, "--chdir=/tmp", "--wrap=sleep 3600")

    def empty(self) -> None:
        """End what `fill` started."""
        self.command("scancel", "--name=other")

    def stop_controller(self, *, kill: bool = False) -> None:
        """Stop the controller; if it is killed, it may forget what happened in the last seconds."""
        self._kill(self.folder / "slurmctld.pid", signal.SIGKILL if kill else signal.SIGTERM)

    def start_controller(self) -> None:
        """Start the controller, which reads what the last one stored."""
        self._start("slurmctld")

    def repair(self) -> None:
        """Bring all nodes back, as an administrator does."""
        for name in self.nodes:
            if not self._lives(name):
                self.start_node(name)
        self.command("scontrol", "update", f"nodename={','.join(self.nodes)}", "state=resume")

    def _lives(self, name: str) -> bool:
        try:
            return psutil.pid_exists(int((self.folder / f"{name}.pid").read_text()))
        except (OSError, ValueError):
            return False

    def start_node(self, name: str) -> None:
        """Start a node's daemon."""
        self._start("slurmd", "-N", name)

    def kill_node(self, name: str, agents: Iterable[psutil.Process] = ()) -> None:
        """Kill a node's daemon with its jobs, as a power failure does: none of them sees another's end.

        Args:
            name: The node.
            agents: Processes that the jobs started and that don't show to whom they belong.
        """
        self._kill(self.folder / f"{name}.pid")
        processes = [*self._of_node(name), *agents]
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for process in processes:
                with contextlib.suppress(psutil.Error):
                    process.send_signal(number)

    def _of_node(self, name: str) -> Iterator[psutil.Process]:
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                here = process.environ().get("SLURM_CONF") == self.env["SLURM_CONF"]
                if here and name in (process.environ().get("SLURMD_NODENAME"), *self._names(process)):
                    yield process

    def _names(self, process: psutil.Process) -> set[str]:
        """Nodes of the jobs below a process of Slurm."""
        found: set[str] = set()
        if process.name() != "slurmstepd":
            return found
        for child in process.children():
            with contextlib.suppress(psutil.Error):
                found.add(child.environ().get("SLURMD_NODENAME", ""))
        return found

    def _start(self, program: str, *words: str) -> None:
        path = shutil.which(program, path=_PATH)
        assert path is not None
        done = subprocess.run([path, *words], env={**os.environ, **self.env}, capture_output=True, text=True)
        assert done.returncode == 0, f"{program}: {done.stderr}"

    def _kill(self, pid_file: Path, number: int = signal.SIGKILL) -> None:
        with contextlib.suppress(OSError, ValueError, psutil.Error):
            process = psutil.Process(int(pid_file.read_text()))
            process.send_signal(number)
            process.wait(60)
