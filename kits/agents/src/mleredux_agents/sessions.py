"""Open sessions: runs whose agent is an external client that works in the sandbox through requests."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from mleredux._core.plugins import Catalogue, current
from mleredux._core.store import Run, RunStore
from mleredux.errors import MlereduxError
from mleredux.models import State, Task, Verdict
from mleredux.models.formats import plain
from mleredux_agentkit.shell import Finished
from mleredux_agentkit.wire import NoSession, request
from mleredux_agentkit.workspace import Completed

_POLL, _LONGEST_POLL = 0.05, 1.0
_turns = threading.BoundedSemaphore(8)
"""Limits how many sessions are opened at once: hundreds of threads would slow down by competing for the interpreter."""
_lock = threading.Lock()
_open = set["OpenSession"]()
_ended = threading.Event()
"""Set when the program ends."""
stirred = WeakValueDictionary[str, threading.Event]()
"""Events by run; when set, the supervisor of a session in this program notices a request to cancel."""


def opening(task: Task, end: str) -> str:
    """Return the first message of an episode, to which an agent responds with commands and code.

    Args:
        task: The task.
        end: What ends the episode, as the end of a sentence.
    """
    return (
        "Commands and code run in your own folder; the data is in $MLEREDUX_DATA_DIR (`os.environ` in Python). Write "
        f"{task.submission.file} there, {end}\n\n{task.describe()}"
    )


class Attached:
    """A session on this machine, identified by its run.

    Attributes:
        run: The run: `run.output_dir` is the folder in which commands run.
    """

    def __init__(self, run: Run) -> None:
        self.run = run

    @property
    def instructions(self) -> str:
        """The instructions for an agent, in Markdown: folders, limits, and the description of the task."""
        texts = [(self.run.path / "task" / name).read_text("utf-8") for name in ("instructions.md", "description.md")]
        return "\n\n".join(texts)

    @property
    def open(self) -> bool:
        """Whether the session is still open."""
        with contextlib.suppress(NoSession):
            return bool(request(self.run.output_dir, "clock"))
        return False

    def execute(self, text: str, *, language: str = "sh", timeout: float = 600) -> Finished:
        """Run a command (`sh`) or code (`python`, in a new interpreter) in the sandbox's output folder.

        Args:
            text: The command or code.
            language: `sh` or `python`.
            timeout: Seconds after which it is killed; the exit code is then None.

        Raises:
            MlereduxError: The session has ended, or the language is not supported.
        """
        if language not in ("sh", "python"):
            raise MlereduxError(f"The language {language!r} is not supported.", hint="Use sh or python.")
        answer = self._call("execute", text.encode(), language=language, timeout=timeout)
        code = answer.get("code")
        return Finished(code if isinstance(code, int) else None, str(answer.get("output", "")))

    def execute_program(
        self,
        arguments: Sequence[str],
        *,
        content: bytes = b"",
        cwd: str = "",
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> Completed:
        """Run a program in the sandbox; several may run at once.

        Args:
            arguments: The program and its arguments.
            content: The standard input.
            cwd: The working directory, relative to the output folder.
            env: Environment variables in addition to those of the sandbox.
            timeout: Seconds after which it is killed; the exit code is then None.

        Raises:
            MlereduxError: The session has ended.
        """
        head = json.dumps({"arguments": list(arguments), "cwd": cwd, "env": dict(env or {})}).encode()
        answer = self._call("execute-program", head + b"\n" + content, timeout=timeout)
        code, output, length = answer.get("code"), answer.get("content", b""), answer.get("stdout")
        length = length if isinstance(length, int) else 0
        return Completed(code if isinstance(code, int) else None, output[:length], output[length:])

    def read(self, path: str) -> bytes:
        """Return the content of a file in the sandbox, at most 100 MiB; the path is relative to the output folder.

        Raises:
            OSError: The file can't be read: `FileNotFoundError`, `IsADirectoryError`, `PermissionError`, …
            MlereduxError: The session has ended.
        """
        return bytes(self._file("read", path, json.dumps(path).encode()).get("content", b""))

    def write(self, path: str, content: bytes) -> None:
        """Write a file of at most 100 MiB in the sandbox, creating missing folders.

        Raises:
            OSError: The file can't be written.
            MlereduxError: The session has ended.
        """
        self._file("write", path, json.dumps(path).encode() + b"\n" + content)

    def submit(self, source: Path | bytes | None = None) -> Verdict:
        """Submit a file on this machine, or its content; with None, check the submission file in the output folder.

        Returns:
            Whether it is well-formed, from the endpoint that all agents use; never its score.

        Raises:
            MlereduxError: The session has ended, or the file can't be read.
        """
        answer = self._call("submit", source)
        return Verdict(valid=answer.get("valid") is True, message=str(answer.get("message", "")))

    def validate(self) -> Verdict:
        """Check the submission in the output folder.

        Raises:
            MlereduxError: The session has ended.
        """
        answer = self._call("validate")
        return Verdict(valid=answer.get("valid") is True, message=str(answer.get("message", "")))

    @property
    def ending(self) -> str:
        """A sentence about how the session ended, and about the state of the submission file."""
        outcome, report = self.run.outcome, self.run.report
        cause = f" at its {outcome.limit} limit" if outcome is not None and outcome.limit else ""
        if self.run.state is State.CANCELLED:
            cause, then = " by cancellation", "the submission file was not graded"
        elif report is None:
            then = "the submission file is being graded as it was then"
        else:
            valid = "valid" if report.valid_submission else "invalid"
            then = f"the submission file was graded as it was: it is {valid}"
        return f"The session of {self.run.id} has ended{cause}, and {then}."

    def time_left(self) -> float:
        """Return the seconds until the time limit; 0 if the session has ended."""
        with contextlib.suppress(NoSession, TypeError, ValueError):
            return float(request(self.run.output_dir, "clock").get("left", 0.0))
        return 0.0

    def _call(self, do: str, source: Path | bytes | None = None, **facts: Any) -> dict[str, Any]:
        try:
            return request(self.run.output_dir, do, source, **facts)
        except NoSession:
            raise MlereduxError(self.ending, hint="Open another session to continue.") from None
        except OSError as error:
            raise MlereduxError(f"{source!r} can't be read: {error.strerror}.", hint="Choose a file.") from None

    def _file(self, do: str, path: str, content: bytes) -> dict[str, Any]:
        answer = self._call(do, content)
        if isinstance(answer.get("errno"), int):
            raise OSError(answer["errno"], str(answer.get("error")), path)
        return answer


class OpenSession(Attached, contextlib.AbstractContextManager["OpenSession"]):
    """A session opened by this process. As a context manager, it is closed at the end of the block."""

    def __init__(self, run: Run, execute: Callable[[Run], object]) -> None:
        super().__init__(run)
        self._error: BaseException | None = None
        self._started = threading.Event()
        self._done = threading.Event()  # in Python 3.11, a thread whose `join` is interrupted counts as ended
        self._polls = execute is _execute_apart  # another process executes the run: there are no events here
        run.observers.append(lambda _run, event: self._started.set() if event.type == "agent" else None)
        threading.Thread(target=self._work, args=(execute,), daemon=True, name=f"session {run.id}").start()

    def __exit__(self, *_error: object) -> None:
        self.close()

    def finish(self) -> Run:
        """End the session, wait until the run is graded, and return it. It may have ended before."""
        with contextlib.suppress(NoSession):
            request(self.run.output_dir, "finish")
        self._join()
        return self.run

    def close(self) -> None:
        """Cancel the run, unless it has ended."""
        self.cancel()
        self._join()

    def cancel(self) -> None:
        """Cancel the run, unless it has ended, without waiting for it to end."""
        if not self._done.is_set():
            self.run.ask_to_cancel()
            if (event := stirred.get(self.run.id)) is not None:
                event.set()

    def wait_until_open(self, slot_timeout: float | None = None, on_delay: Callable[[], object] = lambda: None) -> None:
        """Wait until the sandbox is ready.

        Args:
            slot_timeout: Seconds to wait for resources held by other runs; None: no limit.
            on_delay: Called if this takes longer than a second or two.

        Raises:
            MlereduxError: The run ended before, or did not get a slot in time.
        """
        waited, pause = 0.0, _POLL
        while True:
            if self._started.wait(pause):
                self._started.clear()
                self._polls, pause = True, _POLL / 2
            pause = min(2 * pause, _LONGEST_POLL)
            if pause == _LONGEST_POLL:
                on_delay()
            if self._polls and self.open:
                return
            if slot_timeout is not None and self.run.state is State.RUNNING and not self.run.log.state.attempts.started:
                waited += pause
                if waited > slot_timeout:
                    limits = self.run.spec.limits
                    raise MlereduxError(
                        f"The session waited {plain(slot_timeout)} seconds for {plain(limits.cpus)} CPUs and "
                        f"{limits.memory_mb} MB of memory, which other runs are using.",
                        hint="Set lower `limits` for each session, or close some sessions.",
                    )
            if self._done.is_set():
                self._join()
                raise MlereduxError(
                    f"The session could not be opened: {self.run.message or 'its run has ended.'}",
                    hint=f"See `mleredux runs show {self.run.id}`.",
                )

    def _work(self, execute: Callable[[Run], object]) -> None:
        try:
            execute(self.run)
        except BaseException as error:
            self._error = error
        self._done.set()
        self._started.set()

    def _join(self) -> None:
        self._done.wait()
        _open.discard(self)
        if self._error is not None:
            raise self._error


def exit_on_signals() -> None:
    """Let SIGTERM and SIGHUP end this program by `SystemExit`, so that its sessions are closed, even during a reset.

    Signals that are handled or ignored, and programs whose main thread does not call this, are left alone.
    """
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, lambda number, _frame: sys.exit(128 + number))


def _exit() -> None:
    """Close all sessions, and let no thread open others, because the program ends."""
    _ended.set()
    close_sessions()


def close_sessions() -> None:
    """Cancel the runs of all sessions that this process has opened, and wait for them to end."""
    for do in (OpenSession.cancel, OpenSession.close):
        list(map(do, tuple(_open)))


def _execute_apart(run: Run) -> None:
    """Execute the run in a process that outlives this one, and wait for it."""
    plugins = [word for name in current().load for word in ("--plugin", name)]
    plugins += [word for name in current().block for word in ("--block", name)]
    words = ("run", "--resume", str(run.path.resolve()), "--runs-dir", str(run.path.parent.resolve()))
    with (run.path / ".worker.log").open("ab") as log:
        subprocess.run(
            [sys.executable, "-m", "mleredux", *plugins, *words],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            check=False,
        )


def fair_share(sessions: int) -> dict[str, Any]:
    """Return `limits` with which this many sessions fit on this machine at once: an equal share of its CPUs and memory,
    but no more than one CPU and 4 GB."""
    from mleredux._core.sandboxes.slots import machine

    has = machine()
    return {"cpus": min(1.0, has.cpus / sessions), "memory_mb": min(4096, has.memory_mb // sessions)}


@lru_cache(maxsize=32)
def _executor(runs: Path, data: Path, catalogue: Catalogue) -> Callable[[Run], object]:
    """Return the function that executes a session's run in this program; all sessions share its pipeline.

    Leftovers of killed sessions in the runs directory, such as mounted disks, are removed first.
    """
    from mleredux._core.data import DataStore
    from mleredux._core.pipeline import Pipeline

    pipeline = Pipeline(RunStore(runs), catalogue, DataStore(data), bound=True)
    pipeline.warm_up()
    slots = pipeline.open_slots()
    # Functions registered with `atexit` are called too late to start threads.
    threading._register_atexit(_exit)  # type: ignore[attr-defined]
    return partial(pipeline.execute_run, slots=slots)


def open_session(
    task: str,
    agent: str,
    *,
    sandbox: str | None = None,
    seed: int = 0,
    time_limit: float | None = None,
    limits: Mapping[str, Any] | None = None,
    context: str | None = None,
    detached: bool = False,
    slot_timeout: float | None = None,
    runs_dir: Path | str | None = None,
    data_dir: Path | str | None = None,
) -> OpenSession:
    """Prepare a task, start a run of it in a sandbox, and return when the session is open.

    Args:
        task: Id of a task.
        agent: The id of a registered agent that was created with `session_agent`.
        detached: Whether a separate process executes the run, so that it is graded even if this one is killed.
        slot_timeout: Seconds to wait for CPUs or memory held by other runs; None: no limit.
        sandbox, seed, time_limit, limits, context, runs_dir, data_dir: As in `mleredux.run`; by default, the time limit
            is an hour.

    Raises:
        MlereduxError: The request is invalid, or the sandbox can't be opened.
    """
    from mleredux._core.data import DataStore
    from mleredux._core.planning.plans import plan
    from mleredux.models.request import Request

    exit_on_signals()
    store, data = RunStore(runs_dir), DataStore(data_dir)
    changed = {**(limits or {}), **({} if time_limit is None else {"time_limit": time_limit})}
    request = Request.single(task, agent, sandbox=sandbox, seed=seed, limits=changed, context=context)
    with contextlib.ExitStack() as turn:
        turn.enter_context(_turns)
        [planned] = plan(request, current(), own_machine=True)
        run = store.create(planned, data.path)
        if detached:
            session = OpenSession(run, _execute_apart)
        else:
            with _lock:
                execute = _executor(store.path, data.path, current())
            session = OpenSession(run, execute)
            _open.add(session)
            if _ended.is_set():
                session.cancel()
        try:
            session.wait_until_open(slot_timeout, turn.close)
        except BaseException:
            session.close()
            raise
    return session
