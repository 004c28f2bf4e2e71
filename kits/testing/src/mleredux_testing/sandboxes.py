"""The self-check for all sandboxes, including third-party ones."""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest import mock

from mleredux._core.plugins import current
from mleredux._core.protocols import Sandbox
from mleredux._core.sandboxes.volume import find_disk
from mleredux.models import Cause

from mleredux_testing import sandbox_agents as programs
from mleredux_testing.findings import Findings, expect_declared
from mleredux_testing.launches import Bench, Started
from mleredux_testing.names import ODD_NAME

_SECRET = "MLEREDUX_CHECK_SECRET"
_WAIT = 30.0


def check_sandbox(
    sandbox: Sandbox | str, tmp: Path | None = None, *, base_image: str | None = None, build_limit: float = 1800
) -> Findings:
    """Check a sandbox with real agents: their view of the machine, how they end, and that nothing remains of them.

    Args:
        sandbox: The sandbox, or its id.
        tmp: A folder for runs; None: a temporary folder.
        base_image: Base image, if the sandbox builds images.
        build_limit: Time limit of the build in seconds.

    Raises:
        NotConforming: With all problems.
    """
    findings = Findings(f"Sandbox {sandbox if isinstance(sandbox, str) else sandbox.id}")
    with tempfile.TemporaryDirectory(prefix="mleredux-check-") as folder, findings.looking_at("sandbox"):
        checked = current().sandbox(sandbox) if isinstance(sandbox, str) else sandbox
        place = (tmp or Path(folder)) / ODD_NAME
        place.mkdir(parents=True)
        place.parent.chmod(0o755)  # an agent's user in a container is not our user
        expect_declared(findings, checked, Sandbox, "mleredux.plugin.sandbox.Sandbox")
        with Bench(checked, place, base_image, build_limit) as bench:
            _check_build(findings, bench)
            for check in (_check_probe, _check_terminate, _check_kill, _check_attach, _check_sweep, _check_limits):
                with findings.looking_at(check.__name__.removeprefix("_check_")):
                    check(findings, bench)
    return findings.close()


def _check_build(findings: Findings, bench: Bench) -> None:
    first, again = bench.build(), bench.build()
    findings.expect(
        "identity", first.identity and first.identity == again.identity, "building twice results in two identities."
    )
    findings.expect("cached", again.cached, "building the same again does not report that it was cached.")


def _check_probe(findings: Findings, bench: Bench) -> None:
    """Check the environment as reported by one agent."""
    # For so long, because other threads read the environment until the handle is closed.
    with mock.patch.dict(os.environ, {_SECRET: "of the host"}), socket.socket() as server:
        server.bind(("0.0.0.0", 0))
        server.listen()
        port = server.getsockname()[1]
        options = {
            "answers": str(bench.private / "answers.csv"),
            "addresses": [[host, port] for host in _own_addresses()],
        }
        started = bench.start("probe", programs.PROBE, options=options, env={"GIVEN": "ünï"})
        ended = started.wait(_WAIT * 2)
        started.handle.close()
    findings.expect("exit code", ended is not None and ended.code == 7, f"an agent that exits with 7 ended as {ended}.")
    log = started.launch.log.read_bytes()
    whole = b"out \xff\xfe\x00 out" in log and b"err \xc3\x28 err" in log
    findings.expect("log", whole, f"the log lost bytes of stdout or stderr: {log[:300]!r}.")
    seen_path = started.launch.output_dir / "probe.json"
    if not findings.expect(
        "output", seen_path.exists(), f"the files that the agent wrote are not in the output folder; log: {log!r}."
    ):
        return
    view: dict[str, Any] = json.loads(seen_path.read_bytes())
    _check_surroundings(findings, bench, started, view)
    _check_validation(findings, bench, view)


def _check_surroundings(findings: Findings, bench: Bench, started: Started, view: dict[str, Any]) -> None:
    env = view["env"]
    findings.expect("environment is scrubbed", _SECRET not in env, "environment variables of the host reach the agent.")
    lacking = [name for name, value in started.launch.env.items() if env.get(name) != value]
    findings.expect(
        "environment is given", not lacking, f"variables of the launch do not reach the agent: {', '.join(lacking)}."
    )
    findings.expect("working directory", view["cwd"] == view["output"], f"it is {view['cwd']}, not the output folder.")
    findings.expect("task folder", view["task.json"] == "submission.csv", f"task.json: {view['task.json']}.")
    findings.expect("scratch", view["write scratch"] == "written", f"scratch: {view['write scratch']}.")
    findings.expect("sockets", view["listen"] == "listens", f"sockets in temporary folders: {view['listen']}.")
    folders = [env[f"MLEREDUX_{name}_DIR"] for name in ("TASK", "DATA", "OUTPUT", "SCRATCH")]
    odd = [folder for folder in folders if shlex.quote(folder) != folder]
    findings.expect("plain paths", not odd, f"paths of the agent's folders need quotes: {', '.join(odd)}.")
    if not bench.sandbox.capabilities.isolated:
        findings.good("isolation", "not checked: it declares that it is not a security boundary")
        return
    for name in ("write task", "write data"):
        findings.expect(name, view[name] != "written", "the agent can change read-only files.")
    mounts = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), view["mounts"])
    hidden = find_disk(started.launch.control_dir.parent).enforced_by == "walk" or str(bench.store.path) not in mounts
    findings.expect("mounts", hidden, "the agent's mount table shows paths in the runs directory.")
    findings.expect("answers", view["answers"] == "unseen", "the agent sees the answers.")
    findings.expect("network", "reached" not in view["host"], "with network `none`, the agent reaches the host.")


def _check_validation(findings: Findings, bench: Bench, view: dict[str, Any]) -> None:
    for name, expected in (("validate file", True), ("validate body", False), ("validate.sh", True)):
        answer = view[name]
        agrees = isinstance(answer, dict) and answer.get("valid") is expected
        findings.expect(name, agrees, f"the validation endpoint should return valid={expected}, but returned {answer}.")
    findings.expect("validations", len(bench.verdicts) == 3, f"{len(bench.verdicts)} of 3 validations were recorded.")


def _check_terminate(findings: Findings, bench: Bench) -> None:
    with bench.start("polite", programs.POLITE) as started:
        if not findings.expect(
            "live output", started.ready(_WAIT), "files of a running agent do not appear in the output."
        ):
            return
        findings.expect("poll", started.handle.poll() is None, "poll() returns an exit while the agent is running.")
        started.handle.terminate()
        ended = started.wait(_WAIT)
        findings.expect(
            "terminate", ended is not None and ended.code == 5, f"SIGTERM does not reach the agent: {ended}."
        )


def _check_kill(findings: Findings, bench: Bench) -> None:
    with bench.start("stubborn", programs.STUBBORN) as started:
        started.ready(_WAIT)
        time.sleep(0.5)
        usage = started.handle.usage()
        many = usage.processes is None or usage.processes >= 2
        findings.expect("usage", many, f"usage() counts {usage.processes} processes of an agent that has two.")
        started.handle.kill()
        ended = started.wait(_WAIT)
        findings.expect("kill", ended is not None and ended.code != 0, f"after kill(), the agent ended as {ended}.")
        _expect_silence(findings, "kill ends children", started)


def _check_attach(findings: Findings, bench: Bench) -> None:
    findings.expect(
        "attach to nothing",
        bench.sandbox.attach(bench.launch("never")) is None,
        "attach() finds an agent that was never started.",
    )
    with bench.start("attached", programs.POLITE) as started:
        started.ready(_WAIT)
        again = bench.sandbox.attach(started.launch)
        if not findings.expect(
            "attach", again is not None and again.id == started.handle.id, "attach() does not find it."
        ):
            return
        assert again is not None
        findings.expect("attached poll", again.poll() is None, "a running, attached agent is reported as ended.")
        close = abs(again.started_at - started.handle.started_at) < 2
        findings.expect("attached start", close, "an attached agent has a different start time.")
        again.terminate()
        ended = started.wait(_WAIT)
        findings.expect("attached end", ended is not None and ended.code == 5, f"it ended as {ended}.")
        late = bench.sandbox.attach(started.launch)
        ok = late is not None and (finished := late.poll()) is not None and finished.code == 5
        findings.expect("attach after the end", ok, "attach() does not know how an unobserved agent ended.")


def _check_sweep(findings: Findings, bench: Bench) -> None:
    with bench.start("left", programs.STUBBORN) as started:
        started.ready(_WAIT)
        run_id, owner = started.launch.run_id, started.launch.owner
        of_others = list(bench.sandbox.sweep("0" * 16, lambda _run: False))
        findings.expect("sweep of others", run_id not in of_others, "sweep() removes runs of another owner.")
        of_living = list(bench.sandbox.sweep(owner, lambda _run: True))
        running = run_id not in of_living and started.handle.poll() is None
        findings.expect("sweep of the living", running, "sweep() removes runs that are alive.")
        swept = list(bench.sandbox.sweep(owner, lambda _run: False))
        findings.expect("sweep", run_id in swept, f"sweep() does not name the run left behind, only {swept}.")
        _expect_silence(findings, "sweep ends all", started)


def _check_limits(findings: Findings, bench: Bench) -> None:
    hungry, _ = bench.supervise("hungry", programs.HUNGRY, memory_mb=192, time_limit=60)
    findings.expect("memory limit", hungry.cause == Cause.OUT_OF_MEMORY, f"an agent that takes all memory: {hungry}.")
    waiting, _ = bench.supervise("waiting", programs.HUNGRY_CHILD, memory_mb=192, time_limit=15, grace=0)
    named = waiting.cause == Cause.OUT_OF_MEMORY and "more than its limit of 192 MB of memory" in str(waiting.message)
    findings.expect("memory of a child", named, f"an agent that waits for a child killed for memory: {waiting}.")
    late, _ = bench.supervise("late", programs.STUBBORN, time_limit=2, grace=0.5)
    timed_out = late.cause == Cause.AGENT_TIMED_OUT and late.limit == "time"
    findings.expect("time limit", timed_out, f"an agent that ignores SIGTERM at its time limit: {late}.")
    crowd, output = bench.supervise("crowd", programs.CROWD, processes=24, time_limit=60)
    count = (output / "made").stat().st_size
    findings.expect("process limit", count < 60, f"an agent that may run 24 processes started {count}: {crowd}.")
    glutton, output = bench.supervise("glutton", programs.GLUTTON, disk_mb=8, time_limit=60)
    size = (output / "large").stat().st_size >> 20
    findings.expect("disk limit", size < 64, f"an agent that may write 8 MB wrote {size}: {glutton}.")
    if find_disk(output.parent).enforced_by == "volume":
        hidden, _ = bench.supervise("hidden", programs.HIDDEN, disk_mb=16, time_limit=60)
        held = hidden.cause == Cause.OUT_OF_DISK
        findings.expect("output and scratch are the run's disk", held, f"an agent that fills both: {hidden}.")


def _expect_silence(findings: Findings, name: str, started: Started) -> None:
    """Check that no process of the agent is still writing."""
    beats = started.beats()
    time.sleep(0.6)
    findings.expect(name, beats and beats == started.beats(), "processes of the agent are still running.")


def _own_addresses() -> list[str]:
    """Return the addresses of this machine, including the loopback address."""
    import psutil

    return [
        address.address
        for addresses in psutil.net_if_addrs().values()
        for address in addresses
        if address.family == socket.AF_INET
    ]
