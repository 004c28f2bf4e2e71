"""Store AIDE's results: the journal and each node's submission, of which the best is submitted."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from aide.journal import Journal, Node
from aide.utils.config import save_run
from mleredux_agentkit import Task, copy, write

KEPT_BYTES = 50_000_000
"""Maximum size of a node's submission to store, in bytes; larger ones are only submitted."""


class Keeper:
    """Stores the results of a run, each file atomically.

    Args:
        task: The task with its output folder.
        config: AIDE's configuration, with a writable `log_dir`.
        facts: Additional information for the reader of the journal.
    """

    def __init__(self, task: Task, config: Any, facts: dict[str, Any]) -> None:
        self.task, self.logs, self.config = task, task.logs("aide"), config
        self.facts: dict[str, Any] = {**facts, "nodes": {}}
        self.staging = Path(config.log_dir)
        self.working = Path(config.workspace_dir) / "working"
        self.version = 0
        self._handed_in: Node | None = None
        self._submissions: dict[str, Path] = {}

    def before(self) -> None:
        """Remove the previous node's submission, so that it is not attributed to the next node."""
        self._submission_path().unlink(missing_ok=True)

    def after(self, journal: Journal) -> None:
        """Store all results after a node was added."""
        node = journal[-1]
        written = self._submission_path()
        if written.is_file() and not written.is_symlink():
            kept = self.task.scratch_dir / "submissions" / f"{node.step:04d}{written.suffix}"
            kept.parent.mkdir(exist_ok=True)
            shutil.move(written, kept)
            self._submissions[node.id] = kept
            self._keep_submission(node, kept)
        self._submit(journal)
        self.save(journal)

    def at_end(self) -> None:
        """Submit the output of the last solution if there was no time to evaluate it and nothing has been submitted
        yet.
        """
        written = self._submission_path()
        if self._handed_in is None and written.is_file() and not written.is_symlink():
            self.task.submit(written)
            print("submitted the output of the last solution", flush=True)

    def save(self, journal: Journal) -> None:
        """Write AIDE's logs."""
        self.staging.mkdir(parents=True, exist_ok=True)
        save_run(self.config, journal)
        (self.staging / "run.json").write_text(json.dumps(self.facts, indent=1), encoding="utf-8")
        for path in self.staging.iterdir():
            copy(path, self.logs / path.name)
        best = journal.get_best_node(only_good=False)
        write(self.task.output_dir / "code" / "best_solution.py", best.code)

    def _submission_path(self) -> Path:
        named = self.working / self.task.submission.name
        return named if named.exists() else self.working / "submission.csv"

    def _keep_submission(self, node: Node, path: Path) -> None:
        fact: dict[str, Any] = {"bytes": path.stat().st_size}
        if fact["bytes"] <= KEPT_BYTES:
            name = f"submissions/{path.name}"
            copy(path, self.logs / name)
            fact["submission"] = name
        self.facts["nodes"][node.id] = fact

    def _submit(self, journal: Journal) -> None:
        """Submit the best node's submission; that of a buggy node only if there is no other."""
        candidates = [node for node in journal.nodes if node.id in self._submissions]
        good = [node for node in candidates if not node.is_buggy]
        if not candidates or (not good and self._handed_in is not None):
            return
        best = max(good, key=lambda node: node.metric) if good else candidates[0]
        if best is self._handed_in:
            return
        self.task.submit(self._submissions[best.id])
        self._handed_in = best
        self.version += 1
        self.facts["nodes"][best.id]["version"] = self.version
        print(f"submitted the submission of node {best.step} ({best.metric})", flush=True)
