"""The input of every stage, and the interruption of work that does not check for cancellation."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

from mleredux._core.data.datastore import DataStore
from mleredux._core.plugins import Catalogue
from mleredux._core.protocols import Built, Sandbox
from mleredux._core.sandboxes.slots import Slots
from mleredux._core.sandboxes.task_images import placed
from mleredux._core.store import Run, RunStore
from mleredux._core.store.sparse import remove_tree
from mleredux.errors import Cancelled
from mleredux.models import Agent, Task


@dataclass
class StageContext:
    """A run and its surroundings.

    Attributes:
        run: The run.
        owner: Identity of the store that the run belongs to.
        catalogue: The plugins.
        data: The store of raw and prepared data.
        slots: CPUs, memory and GPUs of the machine.
        cancelled: Returns whether a stop was requested.
        progress: Called with short progress messages.
        base_image: Base image for builds, if the user specified one.
        smoke: Executes the agent's smoke run in its environment; None: no smoke run.
        bound: Whether to end the agent when this program is killed.
        secrets: Secret values from services, which are masked in all stored files.
    """

    run: Run
    owner: str
    catalogue: Catalogue
    data: DataStore
    slots: Slots
    cancelled: Callable[[], bool]
    progress: Callable[[str], None]
    base_image: str | None = None
    smoke: Callable[[Built], None] | None = None
    bound: bool = False
    secrets: set[str] = field(default_factory=set)

    @cached_property
    def task(self) -> Task:
        """The run's task."""
        return self.catalogue.task(self.run.spec.task)

    @cached_property
    def agent(self) -> Agent:
        """The run's agent, configured with the run's options."""
        return placed(self.catalogue.agent(self.run.spec.agent, self.run.spec.options), self.task)

    @cached_property
    def sandbox(self) -> Sandbox:
        """The run's sandbox."""
        return self.catalogue.sandbox(self.run.spec.sandbox)

    @contextmanager
    def inner_store(self, folder: str) -> Iterator[RunStore]:
        """Yield a store for inner runs of this run, with its id and owner, so that a sweep finds them.

        Args:
            folder: One of `INNER`.
        """
        for _ in self.sandbox.sweep(self.owner, lambda run_id: run_id != self.run.id):
            continue
        store = RunStore(self.run.path / folder, owner=self.owner)
        remove_tree(store.path)
        store.path.mkdir()
        try:
            yield store
        finally:
            remove_tree(store.path)

    def say(self, message: str) -> None:
        """Report progress, and raise an exception if a stop was requested.

        Raises:
            Cancelled: A stop was requested.
        """
        self.check_cancelled()
        self.progress(message)

    def check_cancelled(self) -> None:
        """Raise an exception if a stop was requested.

        Raises:
            Cancelled: A stop was requested.
        """
        if self.cancelled():
            raise Cancelled


_POLL_SECONDS = 0.2


@contextmanager
def interruptible(cancelled: Callable[[], bool]) -> Iterator[None]:
    """Interrupt this thread between any two instructions when a stop is requested.

    The work must tolerate this as it would tolerate a killed program. Compiled code is not interrupted before it
    returns.

    Raises:
        Cancelled: A stop was requested.
    """
    ended, guard, thread = threading.Event(), threading.Lock(), threading.get_ident()

    def watch() -> None:
        while not ended.wait(_POLL_SECONDS):
            with guard:
                if cancelled() and not ended.is_set():
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(Cancelled))
                    return

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    except Exception as error:
        if cancelled():  # however the work reports the interruption
            raise Cancelled from error
        raise
    finally:
        with guard:
            ended.set()
