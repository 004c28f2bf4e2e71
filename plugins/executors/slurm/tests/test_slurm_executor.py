"""Runs on a real Slurm cluster of several nodes on this machine, whatever happens to it meanwhile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from mleredux._core.store.run import read_ticket
from mleredux.errors import ExecutorError
from mleredux.plugin.agent import Limits
from mleredux.plugin.executor import JobSpec, JobStatus
from mleredux_executor_slurm import executor as slurm_executor
from mleredux_executor_slurm.executor import EXECUTOR
from mleredux_support.lab import Lab, until
from mleredux_support.slurm import SlurmCluster
from mleredux_testing.names import ODD_NAME

pytestmark = pytest.mark.slurm
RUNS = int(os.environ.get("MLEREDUX_TEST_RUNS") or 40)
"""200 beside the benchmarks: `MLEREDUX_TEST_RUNS=200`."""


@pytest.fixture
def lab(tmp_path: Path, slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    home = tmp_path / ODD_NAME
    home.mkdir()
    for name, value in Lab.environment(home).items():
        monkeypatch.setenv(name, value)
    made = Lab(home, EXECUTOR)
    yield made
    made.close()


@pytest.mark.slow
def test_of_many_runs_on_4_nodes_none_is_lost_or_done_twice_whatever_fails(
    lab: Lab, slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node killed, a new controller, a preemption that fills all nodes, a requeue and a cancellation, meanwhile."""
    # Cheap runs: without reports, file systems, NumPy and pandas, which the toy's grader does not need.
    for name in ("numpy", "pandas"):
        (lab.home / f"{name}.py").write_text("raise ImportError")
    path = os.pathsep.join((str(lab.home), os.environ["PYTHONPATH"]))
    cheap = {"PYTHONPATH": path, "MLEREDUX_BLOCK_PLUGINS": "reports,notes", "MLEREDUX_DISK_LIMIT": "walk"}
    for name, value in cheap.items():
        monkeypatch.setenv(name, value)
    on_dead, requeued, cancelled = waiting = [lab.new(waits=True) for _ in range(3)]
    runs = [*waiting, *(lab.new() for _ in range(RUNS - len(waiting)))]
    thread = lab.follow(runs)

    def begun(share: float) -> None:
        until(lambda: sum(lab.starts(run) > 0 for run in runs) >= share * RUNS, 600)

    until(lambda: all(lab.starts(run) and lab.place(run) for run in waiting))
    assert len({lab.job(run).partition("_")[0] for run in runs}) == 1, "one array for equal limits"
    node = lab.place(on_dead)
    slurm.stop_controller()
    slurm.kill_node(node, lab.agents(run for run in runs if lab.place(run) == node))
    slurm.start_controller()
    cancelled.ask_to_cancel()
    until(lambda: cancelled.state == "cancelled")
    begun(0.2)
    slurm.repair()

    begun(0.4)
    slurm.fill("high")
    until(lambda: "running" not in {one.state for one in EXECUTOR.poll(map(lab.job, runs)).values()})
    until(lambda: "queued (slurm: pending" in lab.said[requeued.id][-1])
    slurm.empty()

    until(lambda: lab.starts(requeued) == 2)
    until(lambda: slurm.succeeds("scontrol", "requeue", lab.job(requeued)))
    lab.release()

    begun(0.8)
    slurm.stop_controller()
    slurm.start_controller()
    thread.join(600)
    assert not thread.is_alive(), {run.id: (run.state, lab.said[run.id][-1]) for run in runs if not run.state.final}
    count = lab.count(run for run in runs if run is not cancelled)
    assert (count.done, count.lost, count.twice) == (RUNS - 1, (), ())
    assert lab.starts(on_dead) > 1 and lab.starts(requeued) == 3
    assert [one.data["stage"] for one in requeued.events() if one.type == "stage"].count("preparing") == 1


def specs(folder: Path, *memory_mb: int) -> list[JobSpec]:
    return [
        JobSpec(f"run-{n}", folder / "run", ("sleep", "600"), Limits(memory_mb=mb), 60)
        for n, mb in enumerate(memory_mb)
    ]


def live(slurm: SlurmCluster) -> list[str]:
    return slurm.command("squeue", "--noheader", "--array", f"--name={slurm_executor.JOB_NAME}").split()


def test_of_runs_one_of_which_is_refused_none_stays(tmp_path: Path, slurm: SlurmCluster) -> None:
    with pytest.raises(ExecutorError, match="sbatch failed"):
        EXECUTOR.submit(specs(tmp_path, 256, 512, 3489))
    until(lambda: not live(slurm), 60)
    jobs = EXECUTOR.submit(specs(tmp_path, 256, 512, 3488))
    assert "ended" not in {EXECUTOR.poll(jobs)[job].state for job in jobs}
    for job in jobs:
        EXECUTOR.cancel(job)
    until(lambda: not live(slurm), 60)


def test_more_runs_than_an_array_can_have(tmp_path: Path, slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(slurm_executor.OPTIONS_VARIABLE, "--hold --job-name=theirs --array=7")
    jobs = EXECUTOR.submit(specs(tmp_path, *[256] * 1002))
    news = EXECUTOR.poll(jobs)
    arrays = {job.partition("_")[0] for job in jobs}
    try:
        assert (len(arrays), len(news)) == (2, 1002)
        assert {news[job].state for job in jobs} == {"waiting"}, "found by the name of ours"
    finally:
        for number in arrays:
            EXECUTOR.cancel(number)
    until(lambda: not live(slurm), 60)


def test_runs_are_followed_by_the_next_program_and_not_submitted_again(lab: Lab) -> None:
    run = lab.new(waits=True)
    first = lab.follow([run])
    until(lambda: lab.starts(run))
    job, shown = lab.job(run), len(lab.said[run.id])
    again = lab.follow([run])
    until(lambda: len(lab.said[run.id]) > shown)  # by the second
    assert lab.job(run) == job
    lab.release()
    first.join(240), again.join(240)
    assert (run.state, lab.starts(run)) == ("done", 1)


def test_devices_that_slurm_gave_are_those_of_the_agent(lab: Lab) -> None:
    run = lab.new(limits={"gpus": 1})
    lab.follow([run]).join(240)
    assert run.state == "done", run.message
    assert (run.output_dir / "devices").read_text().strip().isdigit()


@pytest.mark.apptainer
@pytest.mark.slow
def test_the_command_line_runs_an_agent_in_apptainer_on_a_node(
    tmp_path: Path, slurm: SlurmCluster, apptainer_base_image: str
) -> None:
    words = ("run", "digits", "--agent", "dummy", "--executor", "slurm", "--sandbox", "apptainer", "--json")
    folders = ("--runs-dir", str(tmp_path / "runs"), "--data-dir", str(tmp_path / "data"))
    env = {**os.environ, **slurm.env, "MLEREDUX_BASE_IMAGE": apptainer_base_image}
    done = subprocess.run(
        [sys.executable, "-m", "mleredux", *words, *folders], env=env, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert record["report"]["valid_submission"] and record["report"]["ledger"]["isolated"], record
    job = read_ticket(Path(record["path"]))["job"]
    assert f"ArrayJobId={job.partition('_')[0]} " in slurm.command("scontrol", "show", "job"), "it was a job of Slurm"


def test_the_nodes_have_capacity_and_labels(slurm: SlurmCluster) -> None:
    nodes = EXECUTOR.nodes()
    assert {node.name for node in nodes} == set(slurm.nodes)
    assert {(node.cpus, node.memory_mb, node.gpus, node.labels) for node in nodes} == {(2.0, 3488, 2, ("high", "low"))}
    assert EXECUTOR.check()[0].ok
    assert EXECUTOR.poll(["999_0"]) == {"999_0": JobStatus("ended")}


def test_a_refusal_of_slurm_is_one_sentence(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(slurm_executor.OPTIONS_VARIABLE, "--partition=none-of-that-name")
    with pytest.raises(ExecutorError, match=r"sbatch failed: .*partition"):
        lab.pipeline().execute([lab.new()])


def test_a_run_for_which_no_node_is_large_enough_is_refused(lab: Lab) -> None:
    run = lab.new(limits={"cpus": 64})
    with pytest.raises(ExecutorError, match="No node of slurm has 64 CPUs, 256 MB of memory and 0 GPUs"):
        lab.pipeline().execute([run])
    assert lab.job(run) == "None"


# As Slurm 22.05 printed it with slurmdbd and MariaDB; the state of the second job is from its manual.
ACCOUNTS = "1_0|FAILED|n1\n1_1|TIMEOUT|n2\n1_2|CANCELLED by 0|n1\n1_3|RUNNING|n1\n"


def test_the_accounts_tell_how_forgotten_jobs_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, said in (("squeue", "2_0|RUNNING|None|n3\n"), ("sacct", ACCOUNTS)):
        (tmp_path / name).write_text(f"#!/bin/sh\necho $* >> {tmp_path}/asked-{name}\nprintf '{said}'\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    executor, jobs = slurm_executor.SlurmExecutor(), ["1_0", "1_1", "1_2", "1_3", "9_9"]
    for _ in range(2):
        assert executor.poll(["2_0", *jobs]) == {
            "2_0": JobStatus("running", "n3"),
            "1_0": JobStatus("ended", "failed on n1"),
            "1_1": JobStatus("ended", "timeout on n2"),
            "1_2": JobStatus("ended", "cancelled on n1"),
            "1_3": JobStatus("ended"),
            "9_9": JobStatus("ended"),
        }
    [asked] = (tmp_path / "asked-sacct").read_text().splitlines()  # once for all
    assert asked == "--jobs=1_0,1_1,1_2,1_3,9_9 --allocations --noheader --parsable2 --format=JobID,State,NodeList"


def test_where_slurm_is_not_installed_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (finding,) = slurm_executor.SlurmExecutor().check()
    assert not finding.ok and "sinfo was not found" in finding.message and "login node" in (finding.remedy or "")


def test_the_script_of_ci_needs_no_configuration() -> None:
    script = Path(__file__).parents[4] / ".ci" / "slurm"
    done = subprocess.run([script], env={**os.environ, "SLURM_CONF": "/nonexistent"}, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("slurm"), done.stderr


def test_a_job_that_slurm_holds_after_its_launch_failed_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = "\n".join(
        f"17_{index}|{line}|"
        for index, line in enumerate(
            ("PENDING|launch failed requeued held", "REQUEUE_HOLD|JobHoldMaxRequeue", "PENDING|Resources")
        )
    )
    monkeypatch.setattr(slurm_executor, "_run", lambda program, *_words: queue if program == "squeue" else "")
    monkeypatch.setattr(EXECUTOR, "_until", 0.0)  # another test may have asked within the last second
    found = EXECUTOR.poll(["17_0", "17_1", "17_2"])
    assert [found[job].state for job in sorted(found)] == ["ended", "ended", "waiting"]
    assert found["17_0"].detail == "launch failed requeued held"


@pytest.mark.parametrize(
    ("gres", "count"),
    [
        ("gpu", 1),
        ("gpu:a100", 1),
        ("gpu:a100:2(S:0,1),gpu:h100:1(S:1),shard:8", 3),
        ("gpu:nvidia_a100_1g.5gb:7(S:0)", 7),
        ("gpu:0", 0),
        ("(null)", 0),
        ("license:gpu:4", 0),
    ],
)
def test_gpus_of_all_types_are_counted(gres: str, count: int) -> None:
    assert slurm_executor._gpus(gres) == count
