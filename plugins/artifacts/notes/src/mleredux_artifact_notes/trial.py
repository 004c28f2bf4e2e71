"""Repeated execution of a run's code, to verify its result, on random halves of the test rows too."""

from __future__ import annotations

import contextlib
import csv
import io
import random
import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from mleredux.errors import Cancelled
from mleredux.plugin.agent import Agent, Grants
from mleredux.plugin.artifact import Cause, Run, RunStore
from mleredux.plugin.host import Job, Prepared, StageContext, as_prepared, make_report, run_agent, score_in_child
from mleredux.plugin.sandbox import Built
from mleredux.plugin.task import Task

_MAX_BYTES = 64 << 20


def halves(task: Task, tables: Mapping[str, Path], count: int, random: Random) -> Iterator[dict[str, str]]:
    """Draw rows by their ids, without replacement, from several CSV files at once, keeping their order.

    Args:
        task: The task, which names the id columns.
        tables: Files by name; each must have the id columns, and the same ids.

    Yields:
        CSV content by name, with half of the ids; nothing if the tables do not match.
    """
    if not task.submission.id_columns:
        return
    read: dict[str, tuple[list[str], list[tuple[tuple[str, ...], list[str]]]]] = {}
    for name, path in tables.items():
        try:
            if path.stat().st_size > _MAX_BYTES:
                return
            with path.open(encoding="utf-8", newline="") as file:
                header, *rows = csv.reader(file)
            places = [header.index(column) for column in task.submission.id_columns]
            read[name] = header, [(tuple(row[place] for place in places), row) for row in rows if row]
        except (OSError, ValueError, IndexError, csv.Error):
            return
    ids = {name: {key for key, _ in rows} for name, (_, rows) in read.items()}
    every = next(iter(ids.values()))
    if len(every) < 4 or any(keys != every for keys in ids.values()):
        return
    ordered = sorted(every)
    for _ in range(count):
        chosen = set(random.sample(ordered, len(ordered) // 2))
        yield {
            name: _written(header, [row for key, row in rows if key in chosen]) for name, (header, rows) in read.items()
        }


def _written(header: list[str], rows: list[list[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue()


HALVES = 24
"""Number of half samples of the test rows from which the standard error of a score is estimated."""


@dataclass
class Trial:
    """A finished run, and what is needed to execute its code again without access to the files that the run saw.

    Attributes:
        run: The run whose result is checked.
        task: Its task.
        public: The public files that its agent had.
        folder: Folder for files that are needed until the end; sandboxes can mount its content.
    """

    run: Run
    task: Task
    public: Path
    folder: Path
    _context: StageContext
    _prepared: Prepared
    _built: Built

    @property
    def agent(self) -> Agent:
        """Return the run's agent."""
        return self._context.agent

    @property
    def isolated(self) -> bool:
        """Return whether the run's sandbox isolates programs from files on this machine."""
        return self._context.sandbox.capabilities.isolated

    @property
    def lacks(self) -> str | None:
        """Return the resources that the run had but a repetition lacks: the network, variables, tools."""
        spec, agent = self.run.spec, self.agent
        had = {
            "a language model": spec.network == "gateway",
            "the network": spec.network == "open" or spec.grants.hosts,
            "variables of the caller": agent.pass_env or agent.secrets or spec.grants.variables,
            "tools": spec.grants.tools,
        }
        return next((name for name, value in had.items() if value), None)

    def execute(
        self, public: Path, command: tuple[str, ...] | None = None, fill: Callable[[Path], None] = lambda _output: None
    ) -> Path | str:
        """Run a program in a fresh environment of the run's agent: same image, variables, seed and limits, no network.

        Args:
            public: The data to mount instead of the run's own.
            command: The command as in `Agent.command`, run in the new output folder; None: the agent's own command.
            fill: Writes the files that the command needs into the new output folder.

        Returns:
            The submission, or a sentence that explains why there is none, or that the program ended differently than
            before.

        Raises:
            Cancelled: A user cancelled the run.
            SandboxError: The environment broke.
        """
        context, spec = self._context, self.run.spec
        store = RunStore(Path(tempfile.mkdtemp(prefix="runs-", dir=self.folder)), owner=context.owner)
        changed = {"network": "none", "grants": Grants(), "verify": False}
        again = store.create(spec.model_copy(update=changed), spec.data_dir, spec.id)
        fill(again.output_dir)
        changes: dict[str, object] = {"network": "none", "pass_env": (), "secrets": ()}
        inner = replace(context, run=again, smoke=None)
        inner.agent = context.agent.model_copy(update=changes | ({"command": command} if command else {}))
        try:
            outcome, submitted = run_agent(inner, self._built, replace(self._prepared, public=public))
        finally:
            logs = self.run.logs_dir / "verify"
            logs.mkdir(exist_ok=True)
            with contextlib.suppress(OSError):
                shutil.copyfile(again.agent_log, logs / f"{len(list(logs.iterdir())) + 1}.log")
        if outcome.cause is Cause.CANCELLED:
            raise Cancelled("A user cancelled the run.")
        ended = self.run.log.state.outcome if command is None else None
        if outcome.cause is not (ended.cause if ended else None):
            return (outcome.message or "it ended differently from before").rstrip(".") + "."
        if isinstance(submitted, Path):
            return submitted
        return f"{self.task.submission.file} {submitted.problem}."

    def scores(self, submissions: Sequence[Path]) -> list[float | None]:
        """Score submissions against the answers; the score of an invalid one is None."""
        task, private = as_prepared(self.task, self._prepared.private.parent), self._prepared.private
        return self._scores([Job(task, path, private) for path in submissions])

    def standard_error(self, *submissions: Path) -> float | None:
        """Estimate the standard error over test rows of a score, or of the difference between two, by half sampling.

        The estimate is the standard deviation of the scores of random halves, drawn without replacement: the delete-d
        jackknife with d = n / 2 (Shao and Wu, 1989, A General Theory for Jackknife Variance Estimation). No row occurs
        twice, so every grader accepts the samples.

        Returns:
            The result is None if answers and submissions are not tables with the same ids, or if too few samples can be
            scored.
        """
        rows = list(zip(*map(self._half_scores, submissions), strict=False))
        known = [[score for score in row if score is not None] for row in rows]
        differences = [row[0] - sum(row[1:]) for row in known if len(row) == len(submissions)]
        return statistics.stdev(differences) if len(differences) >= HALVES / 2 else None

    def _half_scores(self, submission: Path) -> list[float | None]:
        with tempfile.TemporaryDirectory(prefix="mleredux-halves-") as folder:
            private, sample = self._prepared.private, self.public / (self.task.submission.sample or "")
            tables = {"s.csv": submission, self.task.answers: private / self.task.answers, sample.name: sample}
            jobs = []
            for number, part in enumerate(halves(self.task, tables, HALVES, random.Random(0))):
                home = Path(folder) / str(number)
                for kind in ("public", "private"):
                    (home / kind).mkdir(parents=True)
                (home / "public" / sample.name).write_text(part[sample.name], encoding="utf-8")
                (home / "private" / self.task.answers).write_text(part[self.task.answers], encoding="utf-8")
                (home / "s.csv").write_text(part["s.csv"], encoding="utf-8")
                jobs.append(Job(self.task, home / "s.csv", home / "private"))
            return self._scores(jobs)

    def _scores(self, jobs: Sequence[Job]) -> list[float | None]:
        answers: list[float | None] = []
        while len(answers) < len(jobs):
            results = score_in_child(jobs[len(answers) :], self._context.catalogue, cancelled=self._context.cancelled)
            answers += [item["score"]["value"] if "score" in item else None for item in results]
        rounded = (make_report(job.task, score, path="", exists=True) for job, score in zip(jobs, answers, strict=True))
        return [report.score for report in rounded]

    def report(self, message: str) -> None:
        """Report progress.

        Raises:
            Cancelled: A user cancelled the run.
        """
        self._context.say(message)
