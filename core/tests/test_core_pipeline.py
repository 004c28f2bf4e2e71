"""Runs from start to end: what follows from failures, from being stopped, and from being killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from mleredux._core.store import Run
from mleredux._core.store.files import write_atomically
from mleredux.errors import ResumeRefused, SandboxError
from mleredux.models import Cause, State

TOY = Path(__file__).parent / "toy"
STAGES = ("preparing", "building", "running", "grading", "producing")


def stages(run: Run, status: str = "finished") -> list[str]:
    return [e.data["stage"] for e in run.events() if e.type == "stage" and e.data["status"] == status]


def test_a_run_goes_through_all_stages_and_leaves_everything(toy: Any) -> None:
    run = toy.run("copy")
    assert (run.state, run.cause) == (State.DONE, None)
    assert stages(run) == list(STAGES)
    assert run.report.score == 0.5 and run.report.above_median and not run.report.any_medal
    assert run.report.ledger.answers_exposed and not run.report.ledger.isolated
    paths = {artifact.path for artifact in run.manifest.artifacts}
    assert {"run.json", "events.jsonl", "report.json", "output/submission.csv", "submissions/0001.csv"} <= paths
    assert toy.store.rows()[0]["score"] == 0.5


def test_several_runs_at_once(toy: Any) -> None:
    runs = toy.pipeline(jobs=3).execute([toy.new("copy", seed=seed) for seed in range(3)])
    assert [run.state for run in runs] == [State.DONE] * 3
    assert len(list(toy.data.path.glob("toy/prepared"))) == 1


def test_a_run_reads_its_event_log_once_however_many_events_it_has(toy: Any) -> None:
    code = """
import os, sys
from pathlib import Path
from mleredux._core.planning.plans import Request, plan
from mleredux._core.data import DataStore
from mleredux._core.pipeline import Pipeline
from mleredux._core.plugins import Catalogue
from mleredux._core.store.files import write_atomically
from mleredux._core.store import RunStore
reads = 0
def opened(name, arguments):
    global reads
    if name == "open" and str(arguments[0]).endswith("events.jsonl") and not arguments[2] & os.O_WRONLY:
        reads += 1
sys.addaudithook(opened)
home, catalogue = Path(sys.argv[1]), Catalogue(load=(sys.argv[2],))
store, data = RunStore(home / "runs"), DataStore(home / "data")
[planned] = plan(Request.single("toy", "versions", sandbox="process"), catalogue)
run = store.create(planned, data.path)
Pipeline(store, catalogue, data).execute([run])
print(run.state, len(run.submissions()) > 1, len(run.events()) > 15, reads)
"""
    arguments = [sys.executable, "-c", code, str(toy.home), str(TOY)]
    asked = subprocess.run(arguments, capture_output=True, text=True, timeout=300, check=False)
    state, several, long, reads = asked.stdout.split()
    assert (state, several, long) == ("done", "True", "True"), asked.stderr
    assert int(reads) <= 2, f"{reads} reads of the log"


@pytest.mark.parametrize(
    ("agent", "sentence"),
    [
        ("idle", "does not exist"),
        ("link", "is a link; write the file itself"),
        ("folder", "is a folder, not a file"),
        ("fifo", "is not a regular file"),
    ],
)
def test_what_can_not_be_graded_is_a_report_all_the_same(toy: Any, agent: str, sentence: str) -> None:
    run = toy.run(agent)
    assert run.state is State.DONE
    assert not run.report.valid_submission and run.report.score is None
    assert run.report.submission_exists == (agent != "idle")
    assert run.report.message == f"submission.csv {sentence}."


@pytest.mark.slow
def test_every_version_of_the_submission_is_kept_with_its_time(toy: Any) -> None:
    run = toy.run("versions")
    versions = run.submissions()
    assert [version.path.read_bytes().splitlines()[1] for version in versions] == [b"60,0", b"60,0", b"60,1", b"60,2"]
    assert sorted(version.time for version in versions) == [version.time for version in versions]


def test_secrets_are_masked_in_everything_that_is_kept(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "sk-toy-0123456789"
    monkeypatch.setenv("TOY_SECRET", secret)
    run = toy.run("tells")
    assert run.state is State.DONE, run.message
    kept = [path for path in run.path.rglob("*") if path.is_file() and not path.is_symlink()]
    assert not [path for path in kept if secret.encode() in path.read_bytes()]
    assert (run.output_dir / "notes.bin").read_bytes() == b"\0" + b"*" * len(secret) + b"\0", "places stay the same"
    assert (run.output_dir / ("n" * 250)).read_text() == "key " + "*" * len(secret)
    assert ("*" * len(secret)).encode() in run.agent_log.read_bytes().splitlines()


def test_data_that_an_agent_changed_are_named_and_prepared_again(toy: Any) -> None:
    spoiled = toy.run("spoils-data")
    assert any("changed" in note for note in spoiled.report.ledger.notes)
    fresh = toy.run("copy")
    assert fresh.state is State.DONE and not any("changed" in note for note in fresh.report.ledger.notes)
    assert "1,2,3" not in (toy.data.find(toy.task()).public / "train.csv").read_text()


def test_a_broken_environment_is_tried_once_more_and_never_counts(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox, started = toy.catalogue.sandbox("process"), []
    real = type(sandbox).start

    def start(self: Any, launch: Any) -> Any:
        started.append(launch)
        if len(started) < 2:
            raise SandboxError("The engine is gone.")
        return real(self, launch)

    monkeypatch.setattr(type(sandbox), "start", start)
    run = toy.run("copy")
    assert run.state is State.DONE and len(started) == 2
    assert [event.data["stage"] for event in run.events() if event.type == "retry"] == ["running"]
    monkeypatch.setattr(type(sandbox), "start", lambda *_: (_ for _ in ()).throw(SandboxError("The engine is gone.")))
    broken = toy.run("copy")
    assert (broken.state, broken.cause) == (State.FAILED, Cause.ENVIRONMENT_BROKE)
    assert broken.message == "The engine is gone." and broken.report is None
    assert broken.manifest is not None, "artifacts are kept"
    monkeypatch.setattr(type(sandbox), "start", real)
    assert toy.resume(broken).state is State.DONE


def test_an_agent_that_crashed_is_not_tried_again(toy: Any) -> None:
    run = toy.run("crash")
    assert not [event for event in run.events() if event.type == "retry"]
    with pytest.raises(ResumeRefused, match="is finished"):
        toy.resume(run)


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["preparing", "building", "running", "grading", "producing"])
def test_kill_9_loses_no_finished_stage_and_nothing_lives_on(toy: Any, until: Any, stage: str) -> None:
    gate = toy.hold(stage) if stage != "running" else None
    agent = {"running": "sleeper", "building": "slow-build"}.get(stage, "copy")
    program = toy.start("toy", "--agent", agent, "--time-limit", "100s")
    if gate:
        until(lambda: gate.with_name(f"{stage}.reached").exists())
    else:
        until(lambda: list(toy.store.ids()) and b"ready" in _log(toy.only_run()))
    run = toy.only_run()
    assert run.alive and run.state == stage
    program.kill()
    program.wait()
    assert not run.alive
    finished = stages(run)
    assert finished == list(STAGES[: STAGES.index(stage)])
    if gate:
        gate.unlink()
        again = toy.resume(run)
        assert again.state is State.DONE and again.report.score == 0.5
        assert stages(again) == list(STAGES), "finished stages are not repeated"
    else:
        assert toy.processes(run), "the agent works on"
        other = toy.run("copy")  # the next start finds it, and ends it
        assert other.state is State.DONE and not toy.processes(run)


@pytest.mark.slow
def test_an_agent_goes_on_while_nobody_watches_and_is_found_again(toy: Any, until: Any) -> None:
    program = toy.start("toy", "--agent", "polite", "--time-limit", "12s")
    until(lambda: list(toy.store.ids()) and b"ready" in _log(toy.only_run()))
    program.kill()
    program.wait()
    run = toy.only_run()
    again = toy.resume(run)
    told = [event.data["status"] for event in again.events() if event.type == "agent"]
    assert told == ["started", "adopted"]
    assert again.cause is Cause.AGENT_TIMED_OUT and again.outcome.seconds == pytest.approx(12, abs=3)
    assert again.report.valid_submission


def test_an_agent_that_ended_while_nobody_watched_is_not_run_again(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from mleredux._core.submissions.snapshots import Snapshots

    def die(self: Any) -> Any:
        raise KeyboardInterrupt  # as good as a kill: no stage event is written

    with monkeypatch.context() as patch:
        patch.setattr(Snapshots, "finish", die)
        run = toy.new("counts")
        with pytest.raises(KeyboardInterrupt):
            toy.pipeline().execute([run])
    assert "running" not in stages(run)
    again = toy.resume(run)
    assert again.state is State.DONE and again.report.score == 0.5
    assert (again.output_dir / "count").read_text() == "x"


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_stopping_the_program_cancels_and_keeps_what_there_is(toy: Any, until: Any, number: int) -> None:
    program = toy.start("toy", "--agent", "sleeper", "--json")
    until(lambda: list(toy.store.ids()) and b"ready" in _log(toy.only_run()))
    program.send_signal(number)
    output, _ = program.communicate(timeout=600)
    assert program.returncode == 130
    assert json.loads(output)["status"] == "cancelled"
    run = toy.only_run()
    assert (run.state, run.cause) == (State.CANCELLED, Cause.CANCELLED)
    assert not toy.processes(run)
    assert {"output/submission.csv", "logs/agent.log"} <= {artifact.path for artifact in run.manifest.artifacts}
    assert run.report is None


def test_the_time_of_an_agent_counts_from_its_start_however_late_that_is_noted(
    toy: Any, until: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine an agent may have ended before this program gets to watch it."""
    late: list[float] = []

    def write_late(path: Path, content: str) -> None:
        begun = time.monotonic()
        until(path.with_name("exit.json").exists)
        late.append(time.monotonic() - begun)
        write_atomically(path, content)

    monkeypatch.setattr("mleredux._core.sandboxes.launched.write_atomically", write_late)
    outcome = toy.run("copy").outcome
    assert late and outcome.seconds >= round(late[0], 3) > 0


@pytest.mark.parametrize("stage", ["preparing", "grading"])
def test_a_signal_ends_a_task_s_own_code(toy: Any, until: Any, stage: str) -> None:
    gate = toy.hold(stage)
    program = toy.start("toy", "--agent", "copy", "--json")
    until(gate.with_name(f"{stage}.reached").exists)
    program.send_signal(signal.SIGTERM)
    output, _ = program.communicate(timeout=600)
    assert (program.returncode, json.loads(output)["status"]) == (130, "cancelled")
    assert toy.data.find(toy.task()) is None or stage == "grading"
    gate.unlink()
    assert toy.resume(toy.only_run()).state is State.DONE


@pytest.mark.slow
def test_a_second_signal_ends_the_program_whatever_it_does(toy: Any, until: Any) -> None:
    program = toy.start("toy", "--agent", "stubborn", "--grace", "5m")
    until(lambda: list(toy.store.ids()) and b"ready" in _log(toy.only_run()))
    program.send_signal(signal.SIGTERM)
    run = toy.only_run()
    until(lambda: any(event.type == "signal" for event in run.events()))
    program.send_signal(signal.SIGTERM)
    program.communicate(timeout=600)
    assert (program.returncode, toy.store.get(run.id).state) == (-signal.SIGTERM, State.RUNNING)
    assert toy.processes(run)
    toy.pipeline().execute([])
    assert not toy.processes(run), "the next program sweeps"


def test_anybody_who_may_write_there_can_cancel_a_run_of_another_process(toy: Any, until: Any) -> None:
    program = toy.start("toy", "--agent", "sleeper", "--json")
    until(lambda: list(toy.store.ids()) and b"ready" in _log(toy.only_run()))
    assert toy.only_run().state is State.RUNNING
    toy.only_run().ask_to_cancel()
    program.communicate(timeout=600)
    run = toy.only_run()
    assert (program.returncode, run.state, run.cause) == (130, State.CANCELLED, Cause.CANCELLED)
    assert not toy.processes(run)


def test_a_run_that_was_asked_to_stop_before_it_began_does_nothing_and_can_still_go_on(toy: Any) -> None:
    run = toy.new("counts")
    run.ask_to_cancel()
    toy.pipeline().execute([run])
    assert run.state is State.CANCELLED and not (run.output_dir / "count").exists()
    assert toy.resume(run).state is State.DONE


def test_a_cancelled_run_goes_on_with_a_fresh_agent(toy: Any, until: Any) -> None:
    run, pipeline = toy.new("counts", limits={"time_limit": 60}), toy.pipeline()
    run.observers.append(lambda _run, event: pipeline.cancel() if event.type == "agent" else None)
    pipeline.execute([run])
    assert run.state is State.CANCELLED
    again = toy.resume(run)
    assert again.state is State.DONE, again.message
    assert (again.output_dir / "count").read_text() == "x"


def test_resuming_is_refused_with_the_reason(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run = toy.run("copy")
    with pytest.raises(ResumeRefused, match=r"is finished \(done\)"):
        toy.resume(run)
    run = toy.new("copy")
    run.lock.acquire()
    with pytest.raises(ResumeRefused, match="is being executed"):
        toy.resume(run)
    run.lock.release()
    run = toy.new("copy")
    pipeline = toy.pipeline()
    run.observers.append(lambda _run, event: pipeline.cancel() if event.data.get("state") == "running" else None)
    pipeline.execute([run])
    used = run.use
    for field, value, sentence in (
        ("packages", {"mleredux": "0.0.1"}, "mleredux was 0.0.1, now "),
        ("task_version", "7", "task toy had version 7, now 1"),
        ("agent_version", "7", "agent copy had version 7, now 1"),
        ("python", "2.7", r"Python was 2\.7, now "),
        ("image", "sha256:other", "environment was sha256:other, now process:"),
    ):
        run.record_use(**{field: value})
        with pytest.raises(ResumeRefused, match=f"with other versions: .*{sentence}"):
            toy.resume(run)
        run.record_use(**{field: getattr(used, field)})
    assert toy.resume(run).state is State.DONE


def test_data_that_are_gone_are_prepared_again_on_resuming(toy: Any) -> None:
    import shutil

    run, pipeline = toy.new("copy"), toy.pipeline()
    run.observers.append(lambda _run, event: pipeline.cancel() if event.data.get("state") == "running" else None)
    pipeline.execute([run])
    shutil.rmtree(toy.data.path / "toy" / "prepared")
    assert toy.resume(run).state is State.DONE


def test_an_observer_or_producer_that_fails_ends_no_run(toy: Any) -> None:
    said: list[str] = []
    from mleredux import hookimpl

    class Plugin:
        @hookimpl
        def mleredux_run_event(self, event: Any) -> None:
            raise RuntimeError("observer fell over")

        @hookimpl
        def mleredux_produce_artifacts(self) -> None:
            raise RuntimeError("producer fell over")

    toy.catalogue.manager.register(Plugin(), "rude")
    run = toy.new("copy")
    toy.pipeline(progress=lambda _run, message: said.append(message)).execute([run])
    assert run.state is State.DONE
    assert any("observer fell over" in message for message in said)
    assert any("producer fell over" in event.data["message"] for event in run.events() if event.type == "warning")


def _log(run: Run) -> bytes:
    path: Path = run.agent_log
    time.sleep(0.01)
    return path.read_bytes() if path.exists() else b""


def test_programs_that_look_after_many_runs_leave_those_that_have_ended_as_they_are(toy: Any) -> None:
    run = toy.run("copy")
    before = run.events()
    assert not toy.pipeline().execute_run(run) and run.events() == before


def test_a_cancelled_run_that_is_queued_again_goes_on(toy: Any) -> None:
    run = toy.new("copy")
    run.ask_to_cancel()
    assert toy.pipeline().execute_run(run) and run.state is State.CANCELLED
    run.forget_cancel()
    run.enter(State.QUEUED)
    assert toy.pipeline().execute_run(run) and run.state is State.DONE, run.message


def test_an_agent_whose_start_was_cut_off_is_ended_before_the_next_one(
    toy: Any, until: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mleredux._core.sandboxes import launched

    def die(*_: Any) -> None:
        raise KeyboardInterrupt  # as good as a kill before it is noted which process was started

    run = toy.new("sleeper")
    with monkeypatch.context() as patched:
        patched.setattr(launched, "write_atomically", die)
        with pytest.raises(KeyboardInterrupt):
            toy.pipeline().execute_run(run)
    first = {found.pid for found in until(lambda: toy.processes(run))}
    seen: list[set[int]] = []

    def start(*_: Any) -> None:
        seen.append({found.pid for found in toy.processes(run)})
        raise SandboxError("The test ends here.")

    monkeypatch.setattr(type(toy.catalogue.sandbox("process")), "start", start)
    toy.pipeline().execute_run(toy.store.get(run.id))
    assert first and seen[0].isdisjoint(first)
