"""Runs in an object store: published by a node, and read back.

One small object, the head, changes only by compare-and-swap: it names the attempt that may write, and the tree of its
files. So an attempt that lost its run can't replace anything that a newer one wrote.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from mleredux.errors import NotFound, ResumeRefused, StoreError
from mleredux.plugin.artifact import Run
from mleredux.plugin.command import Catalogue
from mleredux.plugin.executor import ObjectStore
from mleredux.plugin.files import write_atomically
from mleredux.plugin.host import read_ticket

from mleredux_executor_nodes.lease import LEASE_FILE, read_lease
from mleredux_executor_nodes.objects import digest, open_store, read_verified
from mleredux_executor_nodes.snapshots import Scanner, Tree, restore

_EVENTS = "events.jsonl"
_SEEN_FILE = ".replica"
"""The file with the tree that a folder matches."""
_TRIES = 5


def _private(path: str) -> bool:
    """Return whether a path in a run's directory is local to one machine: locks, leases, sandbox controls."""
    return path.startswith((".", "logs/.writing-"))


def _grows(path: str) -> bool:
    return path == _EVENTS or path.startswith("logs/")


LeftOut = Callable[[str, int], bool]


class Replica:
    """A run in an object store, and its directory on this machine.

    Args:
        objects: The object store.
        run_id: The run's id.
        folder: The run's local directory.
        left_out: Returns whether a file is not copied here, from its path and size.

    Attributes:
        tree: The files that were read or published last.
    """

    def __init__(self, objects: ObjectStore, run_id: str, folder: Path, left_out: LeftOut | None = None) -> None:
        self._objects, self._home, self.folder, self._left_out = objects, f"runs/{run_id}", folder, left_out
        self._writer = secrets.token_hex(8)
        self._head: dict[str, Any] | None = None
        self._tag: str | None = None
        self.tree, self._name, self._tree_name = Tree(), "", ""
        self._scanner = Scanner(folder, skip=_private, grows=_grows)
        self._names: dict[str, str] = {}

    @property
    def ticket(self) -> dict[str, Any]:
        """The last ticket that was offered."""
        return dict((self._head or {}).get("ticket") or {})

    @property
    def attempt(self) -> int:
        """The number of starts of the run on all nodes."""
        return int((self._head or {}).get("attempt", 0))

    def offer(self, ticket: dict[str, Any]) -> None:
        """Publish the run for the job with this ticket; writes by earlier jobs are rejected from now on.

        Raises:
            StoreError: The object store does not respond.
        """
        self._load()
        mine = {"writer": self._writer, "attempt": self.attempt + 1, "lease": None}
        self._change(lambda _head: True, ticket={}, **mine, **self._user_requests())
        self.update()
        self.push()
        self._change(self._is_ours, ticket=ticket, writer="", **self._user_requests())

    def fence(self) -> None:
        """Reject further writes of all attempts.

        Raises:
            StoreError: The object store does not respond.
        """
        self._load()
        self._change(lambda _head: True, ticket={}, writer="")

    def load_tree(self) -> None:
        """Read only the list of the run's files.

        Raises:
            NotFound: The object store has no such run.
            StoreError: The object store does not respond, or an object is damaged or missing.
        """
        self._load()
        name = (self._head or {}).get("tree")
        if not name:
            raise NotFound(f"{self._objects.url} has no run {self.folder.name}.", hint="It may have been deleted.")
        if name != self._tree_name:
            self.tree, self._tree_name = Tree.load(self.piece(name)), name

    def piece(self, name: str) -> bytes:
        """Return a piece of a file.

        Raises:
            StoreError: The piece is damaged or missing, or the object store does not respond.
        """
        try:
            return self._get(name)
        except _Deleted:
            raise self._incomplete() from None

    def delete(self) -> None:
        """Delete the run from the store; further writes of attempts are rejected.

        Raises:
            StoreError: The object store does not respond; the call can be repeated.
        """
        self._load()
        if self._head:
            self.fence()
        head = f"{self._home}/head"
        self._objects.delete([key for key in self._objects.keys(self._home) if key != head])
        self._objects.delete([head])  # last: without it, writes of an attempt are not rejected

    def close(self) -> None:
        """Publish the directory of a run that was ended locally.

        Raises:
            StoreError: The object store does not respond.
        """
        self._load()
        self._change(lambda _head: True, ticket={}, writer=self._writer, attempt=self.attempt + 1, lease=None)
        self.push()

    def sweep(self) -> None:
        """Delete the files of replaced attempts from the store.

        Raises:
            NotFound: The object store has no such run.
            StoreError: The object store does not respond; the objects are deleted with the run.
        """
        self.load_tree()
        attempt, wanted = self.attempt, {*self.tree.names(), self._tree_name, "head"}
        stored = ((key, key.removeprefix(f"{self._home}/")) for key in self._objects.keys(self._home))
        # newer attempts may be writing
        old = [key for key, name in stored if name not in wanted and int(name.partition("/")[0]) <= attempt]
        self._objects.delete(old)

    def claim(self, nonce: str) -> bool:
        """Claim the right to write for this attempt; return whether the ticket is still valid.

        Raises:
            StoreError: The object store does not respond.
        """
        self._load()
        number = self.attempt + 1

        def valid(head: dict[str, Any]) -> bool:
            offered = head.get("ticket", {}).get("nonce") == nonce and head["attempt"] < number
            return offered or self._is_ours(head)  # the reply to the claim was lost

        return self._change(valid, writer=self._writer, attempt=number, lease=None)

    def pull(self) -> None:
        """Update the local directory, and pass users' requests to the node.

        Raises:
            StoreError: The object store does not respond.
        """
        self._load()
        self.update()
        head = self._head or {}
        if head.get("lease") and head["lease"] != read_lease(self.folder):
            write_atomically(self.folder / LEASE_FILE, json.dumps(head["lease"]))
        wishes = self._user_requests()
        if head and any(head.get(name) != wish for name, wish in wishes.items()):
            self._change(lambda head: head.get("writer") != "" or bool(head.get("ticket")), **wishes)

    def push(self, *, all_again: bool = False) -> None:
        """Publish the contents of the directory.

        Args:
            all_again: Whether to reread append-only files too: logs in which secrets were masked.

        Raises:
            ResumeRefused: The run was given to another attempt.
            StoreError: The object store does not respond.
        """
        if all_again:
            self._scanner.forget()
        events = self.folder / _EVENTS  # read first, so that everything it refers to is in the other files
        most = {_EVENTS: events.stat().st_size} if events.exists() else {}
        tree = self._scanner.scan(self._put, most)
        content = tree.dump()
        name = digest(content)
        dropped: list[str] = []
        if name != self._name.rpartition("/")[2]:
            name = f"{self.attempt}/{name}"
            self._objects.write(f"{self._home}/{name}", content)
            dropped = [*(self.tree.names() - tree.names()), *filter(None, [self._name])]
        else:
            name = self._name
        if not self._change(self._is_ours, tree=name, lease=read_lease(self.folder)):
            raise ResumeRefused(f"Run {self.folder.name} was assigned to another job.", hint="This job must stop.")
        self._note(tree, name)
        self._objects.delete(f"{self._home}/{name}" for name in dropped)
        self._apply_requests()

    def _is_ours(self, head: dict[str, Any]) -> bool:
        return head.get("writer") == self._writer

    @property
    def current(self) -> bool:
        """Return whether the local directory was the last to be published or updated; it may be newer than the store,
        but never older.
        """
        try:
            return (self.folder / _SEEN_FILE).read_text() == (self._head or {}).get("tree")
        except OSError:
            return False

    def _load(self) -> None:
        stored = self._objects.read(f"{self._home}/head")
        try:
            self._head, self._tag = (dict(json.loads(stored.content)), stored.tag) if stored else ({}, None)
        except (ValueError, TypeError) as error:
            raise StoreError(f"Object {self._home}/head in {self._objects.url} is damaged.") from error

    def _change(self, allowed: Callable[[dict[str, Any]], bool], **fields: Any) -> bool:
        """Change the head, retrying after concurrent changes; return whether the change was allowed."""
        while True:
            if self._head is None:
                self._load()
            head = self._head or {}
            if not allowed(head):
                return False
            # in some stores, tags are hashes of the content: no two contents may be equal
            fresh = {**head, **fields, "stamp": secrets.token_hex(8)}
            self._head = None
            tag = self._objects.swap(f"{self._home}/head", json.dumps(fresh).encode(), self._tag)
            if tag is not None:
                self._head, self._tag = fresh, tag
                return True

    def update(self) -> None:
        """Update the directory to the last published tree, unless it is current.

        Raises:
            StoreError: The object store does not respond.
        """
        for _ in range(_TRIES):
            name = (self._head or {}).get("tree")
            if not name or name == self._name:
                return
            try:
                tree = Tree.load(self._get(name))
                if self._name or not self.current:
                    wanted = tree.without(self._left_out) if self._left_out else tree
                    restore(self.folder, wanted, self._get, skip=_private, grows=_grows, known=self.tree, last=_EVENTS)
            except _Deleted:  # a newer tree has replaced it
                self._load()
                if (self._head or {}).get("tree") == name:
                    raise self._incomplete() from None
                continue
            self._note(tree, name)
            return
        raise StoreError(f"{self._home} in {self._objects.url} changes faster than it can be read.")

    def _note(self, tree: Tree, name: str) -> None:
        self.tree, self._name = tree, name
        self._names = {name.rpartition("/")[2]: name for name in tree.names()}
        write_atomically(self.folder / _SEEN_FILE, name)

    def _put(self, data: bytes) -> str:
        name = digest(data)
        if name not in self._names:
            # with the attempt, so that late deletions by an older one affect only its own objects
            self._objects.write(f"{self._home}/{self.attempt}/{name}", data)
            self._names[name] = f"{self.attempt}/{name}"
        return self._names[name]

    def _get(self, name: str) -> bytes:
        data = read_verified(self._objects, f"{self._home}/{name}")
        if data is None:
            raise _Deleted
        return data

    def _incomplete(self) -> StoreError:
        return StoreError(
            f"Objects of run {self.folder.name} are missing from {self._objects.url}.", hint="Submit it again."
        )

    def _user_requests(self) -> dict[str, Any]:
        """Return users' requests for the run: to cancel it, or not to grade it before a time."""
        run = Run(self.folder)
        end = run.hold_end
        return {"cancel": run.cancel_asked, "hold": end.isoformat() if end else None}

    def _apply_requests(self) -> None:
        """Apply users' requests in the directory of a node."""
        head, run = self._head or {}, Run(self.folder)
        if head.get("cancel") and not run.cancel_asked:
            run.ask_to_cancel()
        if "hold" in head and head["hold"] != self._user_requests()["hold"]:
            run.hold(datetime.fromisoformat(head["hold"])) if head["hold"] else run.release()


def delete_replica(catalogue: Catalogue, folder: Path, url: str | None = None) -> None:
    """Delete an ended run from the object store that it was submitted through, if any.

    Args:
        catalogue: The catalogue of plugins that can open the store.
        folder: The directory of the run; it may be missing.
        url: The object store, unless the run's ticket names it.

    Raises:
        StoreError: The store can't be opened or does not respond; the call can be repeated.
    """
    if (url := read_ticket(folder).get("store") or url) is not None:
        Replica(open_store(catalogue, url), folder.name, folder).delete()


def publish_again(catalogue: Catalogue, folder: Path) -> None:
    """Publish an ended run that was changed locally, if it was submitted through an object store.

    Raises:
        StoreError: The store can't be opened or does not respond; the call can be repeated.
    """
    if (url := read_ticket(folder).get("store")) is not None:
        replica = Replica(open_store(catalogue, url), folder.name, folder)
        replica.close()
        replica.sweep()


class _Deleted(Exception):
    """An object was deleted after it was referenced."""
