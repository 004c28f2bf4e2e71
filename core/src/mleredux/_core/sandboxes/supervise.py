"""Supervise a running agent in any sandbox: its limits, the notice before the time limit, and how the agent ended."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mleredux._core.protocols import Exit, Handle, Usage
from mleredux._core.sandboxes.volume import MAX_FILES, RunDisk
from mleredux._core.submissions.intake import disk_usage
from mleredux.models import Cause, Limits, Outcome
from mleredux.models.events import LimitReached, Notice, Payload, Signal, Waiting
from mleredux.models.formats import plain

_POLL = 0.1
_QUICK_POLL = 0.02
_CHECK_SECONDS = 1.0
_SHARE = 0.05
"""Share of a processor that measuring all agents of this program may take."""
_watched: set[int] = set()

Emit = Callable[[Payload], Any]
_Ending = tuple[Cause | None, str | None, str | None]
"""Why an agent ended: the cause of failure, the limit, and a sentence."""


@dataclass
class Watch:
    """The watched folders, and the functions to call.

    Attributes:
        folders: Everything that the agent writes and that counts toward its disk limit.
        disk: The disk, if it enforces the limit itself; without one, the folders are measured.
        notice: The file that is created a few minutes before the time limit.
        emit: Writes an event.
        cancelled: Returns whether a stop was requested.
        snapshot: Called about every second, to copy submission versions.
        spent: Returns the exhausted budget that ends the agent, if any.
        paused: Returns the number of seconds for which the clock of the time limit was paused.
        measure: Called ten times a second with the seconds since the agent's start and its resource usage.
        started: When the agent started, by the monotonic clock.
    """

    folders: tuple[Path, ...]
    notice: Path
    emit: Emit
    cancelled: Callable[[], bool]
    snapshot: Callable[[], None] = lambda: None
    spent: Callable[[], str | None] = lambda: None
    paused: Callable[[], float] = lambda: 0.0
    measure: Callable[[float, Usage], None] = lambda _seconds, _usage: None
    disk: RunDisk | None = None
    max_memory: float = 0.0
    cpu_seconds: float | None = None
    started: float = 0.0
    _next_check: float = field(default=0.0)
    _next_usage: float = field(default=0.0)


def supervise(handle: Handle, limits: Limits, watch: Watch, age: float | None = None) -> Outcome:
    """Wait until an agent ends, or end it at a limit.

    The order at the time limit: a notice before it, SIGTERM at it, SIGKILL after the grace period; each is an event.

    Args:
        handle: The started agent.
        limits: The agent's limits.
        watch: The watched folders, and the functions to call.
        age: Seconds since its start. The caller computes them, so that nothing here depends on the wall clock, which
            may be changed.
    """
    watch.started = time.monotonic() - (max(0.0, time.time() - handle.started_at) if age is None else age)
    _watched.add(id(watch))
    try:
        return _supervised(handle, limits, watch)
    finally:
        _watched.discard(id(watch))


def _supervised(handle: Handle, limits: Limits, watch: Watch) -> Outcome:
    notified, shown = watch.notice.exists(), None
    while True:
        ended = handle.poll()
        if (waiting_for := _waiting_for(handle)) != shown:
            watch.emit(Waiting(message=waiting_for))
            shown = waiting_for
        now = time.monotonic()
        deadline = watch.started + limits.time_limit + watch.paused()
        notice_at = deadline - min(limits.notice, limits.time_limit / 10)
        if ended is not None:
            return _outcome(watch, ended, _natural_cause(ended, limits, watch))
        if watch.cancelled():
            return _stop(handle, limits, watch, (Cause.CANCELLED, None, "The run was cancelled."))
        if budget := watch.spent():
            message = f"The agent was stopped: its budget {budget} is used up."
            watch.emit(LimitReached(limit=budget, message=message))
            return _stop(handle, limits, watch, (None, budget, message))
        if now >= deadline:
            message = f"The agent was stopped at its time limit of {plain(limits.time_limit)} seconds."
            watch.emit(LimitReached(limit="time", value=limits.time_limit))
            return _stop(handle, limits, watch, (Cause.AGENT_TIMED_OUT, "time", message))
        if not notified and now >= notice_at:
            notified = True
            left = max(0.0, deadline - now)
            with contextlib.suppress(OSError):  # an agent without isolation may have removed the folder
                watch.notice.write_text(f"{left:.0f} seconds are left; then the files in the output folder count.\n")
            watch.emit(Notice(seconds_left=round(left, 1)))
        if now >= watch._next_usage and (over := _over_limit(handle, limits, watch, now)):
            watch.emit(LimitReached(limit=over[1], message=over[2]))
            return _stop(handle, limits, watch, over, grace=0.0)
        next_event = min(deadline, watch._next_usage, notice_at if not notified else deadline) - now
        quick = now - watch.started < 1.0 and not hasattr(handle, "wait")
        if _wait(handle, max(0.005, min(_QUICK_POLL, next_event) if quick else next_event)):
            watch._next_usage = 0.0


def _wait(handle: Handle, seconds: float) -> bool:
    """Wait; for handles with `wait`, only until something happened. Return whether it did."""
    return bool(getattr(handle, "wait", time.sleep)(seconds))


def _waiting_for(handle: Handle) -> str | None:
    """Return the outage whose end a handle waits for, if its sandbox notices outages."""
    return getattr(handle, "waiting_for", None)


def _pause(least: float, began: float) -> float:
    """Return the seconds until the next measurement of an agent.

    Args:
        least: The minimum.
        began: CPU time of this thread before this measurement.
    """
    return max(least, (time.thread_time() - began) * len(_watched) / _SHARE)


def _over_limit(handle: Handle, limits: Limits, watch: Watch, now: float) -> tuple[Cause, str, str] | None:
    began = time.thread_time()
    usage = handle.usage()
    watch.measure(now - watch.started, usage)
    if usage.memory_mb is not None:
        watch.max_memory = max(watch.max_memory, usage.memory_mb)
        if usage.memory_mb > limits.memory_mb:
            return Cause.OUT_OF_MEMORY, "memory", _over_memory(limits)
    if usage.cpu_seconds is not None:
        watch.cpu_seconds = usage.cpu_seconds
    if usage.processes is not None and usage.processes > limits.processes:
        message = f"The agent ran {usage.processes} processes; its limit is {limits.processes}."
        return Cause.AGENT_CRASHED, "processes", message
    if over := _full_disk(limits, watch):
        return over
    if watch.disk is not None:
        watch.disk.check_host()
    idle = usage.processes == 0 and hasattr(handle, "wait")  # if that changes, the wait ends
    watch._next_usage = now + _pause(_CHECK_SECONDS if idle else _POLL, began)
    if now < watch._next_check:
        return None
    begun, began = time.monotonic(), time.thread_time()
    watch.snapshot()
    over = _over_disk(limits, watch) if watch.disk is None or watch.disk.enforced_by == "walk" else None
    # Measuring a large tree takes long: spend no more than a tenth of the time on it.
    watch._next_check = time.monotonic() + _pause(max(_CHECK_SECONDS, 10 * (time.monotonic() - begun)), began)
    return over


def _full_disk(limits: Limits, watch: Watch) -> tuple[Cause, str, str] | None:
    if watch.disk is None or not (how := watch.disk.full()):
        return None
    return Cause.OUT_OF_DISK, "disk", f"The agent {how}; its limit is {limits.disk_mb} MB."


def _over_disk(limits: Limits, watch: Watch) -> tuple[Cause, str, str] | None:
    if watch.disk is not None and watch.disk.enforced_by == "volume":
        return _full_disk(limits, watch)
    used, files = disk_usage(*watch.folders)
    if used <= limits.disk_mb * 2**20 and files <= MAX_FILES:
        return None
    message = f"The agent wrote {used / 2**20:.0f} MB in {files:,} files and folders; its limit is {limits.disk_mb} MB"
    return Cause.OUT_OF_DISK, "disk", f"{message} and {MAX_FILES:,} files and folders."


def _stop(handle: Handle, limits: Limits, watch: Watch, ending: _Ending, grace: float | None = None) -> Outcome:
    """End an agent: first by SIGTERM, unless the grace is 0, then by SIGKILL."""
    grace, (cause, limit, message) = limits.grace if grace is None else grace, ending
    waits = cause is not Cause.CANCELLED
    ended: Exit | None = None
    if grace > 0:
        watch.emit(Signal(signal="SIGTERM", grace=grace))
        handle.terminate()
        until = time.monotonic() + grace
        while (ended := handle.poll()) is None and time.monotonic() < until:
            _wait(handle, _QUICK_POLL)
    if ended is None:
        watch.emit(Signal(signal="SIGKILL"))
        handle.kill()
        until = time.monotonic() + 30
        while (ended := handle.poll()) is None and (time.monotonic() < until or (waits and _waiting_for(handle))):
            _wait(handle, _QUICK_POLL)
    if cause is Cause.AGENT_TIMED_OUT and ended is not None and ended.out_of_memory:
        # The kernel killed one of its processes for lack of memory, and the others waited for it until the time limit.
        watch.emit(LimitReached(limit="memory", message=_over_memory(limits)))
        cause, limit, message = Cause.OUT_OF_MEMORY, "memory", f"{_over_memory(limits)} {message}"
    return _outcome(watch, ended, (cause, limit, message))


def _over_memory(limits: Limits) -> str:
    return f"The agent needed more than its limit of {limits.memory_mb} MB of memory."


def _natural_cause(ended: Exit, limits: Limits, watch: Watch) -> _Ending:
    if ended.out_of_memory:
        return Cause.OUT_OF_MEMORY, "memory", _over_memory(limits)
    if watch.disk is not None and not watch.disk.full():
        watch.disk.check_host()
    if ended.code == 0 and not _full_disk(limits, watch):
        return None, None, None
    # A process that can no longer write often gives up before the disk is checked.
    if (over := _over_disk(limits, watch)) or ended.signal == signal.SIGXFSZ:
        message = over[2] if over else f"The agent wrote a file larger than its disk limit of {limits.disk_mb} MB."
        watch.emit(LimitReached(limit="disk", message=message))
        return Cause.OUT_OF_DISK, "disk", message
    how = f"with exit code {ended.code}" if ended.code is not None else f"by signal {ended.signal}"
    return Cause.AGENT_CRASHED, None, f"The agent's command ended {how}; see its log."


def _outcome(watch: Watch, ended: Exit | None, ending: _Ending) -> Outcome:
    cause, limit, message = ending
    return Outcome(
        exit_code=ended.code if ended else None,
        signal=ended.signal if ended else None,
        cause=cause,
        limit=limit,
        message=message,
        seconds=round(time.monotonic() - watch.started, 3),
        paused_seconds=round(watch.paused(), 3),
        max_memory_mb=round(watch.max_memory, 1) or None,
        cpu_seconds=round(watch.cpu_seconds, 3) if watch.cpu_seconds is not None else None,
    )
