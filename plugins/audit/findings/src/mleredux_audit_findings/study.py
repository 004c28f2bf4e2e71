"""The experiment that measures whether findings help an agent: technique runs, contexts, arms.

The plan is that of an experiment with one arm, the reader, and a table `findings` for the agent that answers technique
tasks. Its digest is stored before the first run.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import mleredux
from mleredux.errors import MlereduxError, NotApplicable, NotFound, file_errors
from mleredux.models.base import first_problem
from mleredux.models.formats import counted
from mleredux.plugin.artifact import Run, RunStore
from mleredux.plugin.command import current
from mleredux.plugin.experiment import Arm, Plan, Request, Seed, agent_reference, resolved
from mleredux.plugin.files import write_atomically
from mleredux_techniques.shared import FORMS, Lesson, collect, contexts, skill_files, write_skill
from pydantic import Field, ValidationError

if TYPE_CHECKING:
    from mleredux.plugin.agent import Agent

AnyArm = TypeVar("AnyArm", bound=Arm)
ARMS = ("none", "checklist", "sham", "unfiltered", "graded", "skill", "compute")
SKILL = "findings"
"""The name of each task's skill."""
RECORD = "findings.json"


class Writer(Arm):
    """The table `findings` of a plan: the agent that answers technique tasks, and the compared arms."""

    agent: str = "analyst"
    """Id or reference of the agent."""
    seeds: tuple[Seed, ...] = (1000,)
    """Seeds of its runs; none of them is a seed of the reader."""
    techniques: tuple[str, ...] = ()
    """The techniques to ask; empty: all."""
    arms: tuple[str, ...] = Field(default=ARMS, min_length=2)
    """The arms to run, a part of `ARMS`; the first is the baseline."""
    compute: dict[str, Any] = {}
    """Fields of the arm `compute`, such as `options`; by default, it gets the time and cost of the technique runs in
    addition to its own."""


class StudyPlan(Plan):
    """The plan of an experiment on findings, with one arm: the reader."""

    findings: Writer = Writer()
    """The agent that answers technique tasks, and what is compared."""


@dataclass
class Study:
    """An experiment on findings, in the runs folder.

    Args:
        path: The file of the plan.
        runs_dir, data_dir: Folders for runs and data; None means the default folders.
        say: Called with progress messages.
    """

    path: Path
    runs_dir: str | None = None
    data_dir: str | None = None
    say: Callable[[str], None] = lambda _message: None
    refused: dict[str, str] = field(default_factory=dict)
    """Technique tasks that do not apply, with the reasons."""

    def __post_init__(self) -> None:
        with file_errors(NotFound, f"The plan {self.path} can't be read", "Write a plan in TOML.", ValueError):
            self.document = tomllib.loads(self.path.read_text(encoding="utf-8"))
        try:
            self.plan = StudyPlan.model_validate(self.document)
        except ValidationError as error:
            place, message, _ = first_problem(error)
            raise MlereduxError(f"{self.path}: {place}: {message}.", hint=f"Change {place}.") from None
        arms = list(self.plan.all_arms().values())
        if len(arms) != 1 or arms[0].context or set(self.plan.findings.arms) - set(ARMS):
            raise MlereduxError(
                f"{self.path} should have one arm, the reader without context, and findings.arms in {', '.join(ARMS)}.",
                hint="The other arms are derived from it.",
            )
        self.reader, self.writer = self._placed(arms[0]), self._placed(self.plan.findings)
        if same := sorted(set(self.writer.seeds) & set(self.plan.experiment.seeds)):
            raise MlereduxError(f"The seed {same[0]} is in experiment.seeds and in findings.seeds.", hint="Change one.")
        self.store = RunStore(self.runs_dir)
        self.folder = self.store.path / "experiments" / f"{self.plan.experiment.name}.findings"
        self.tasks = resolved(Request(tasks=self.plan.experiment.tasks, arms={}), current()).tasks
        for task in self.tasks:
            current().task(task)
        if "sham" in self.writer.arms and len(self.tasks) < 2:
            raise MlereduxError("A sham needs another task's findings.", hint="Add a task, or set findings.arms.")

    @property
    def digest(self) -> str:
        """The SHA-256 of the plan's content, which does not depend on its layout."""
        return hashlib.sha256(json.dumps(self.document, sort_keys=True).encode()).hexdigest()

    @cached_property
    def agent(self) -> Agent:
        """The reader's agent."""
        return current().agent(agent_reference(current(), self.reader.agent))

    def _placed(self, arm: AnyArm) -> AnyArm:
        """Return an arm whose agent, if it is a path relative to the plan, is an absolute one."""
        path = self.path.absolute().parent / arm.agent
        known = arm.agent in current().entries("agents") or not path.exists()
        return arm if known else arm.model_copy(update={"agent": str(path)})

    def run(self, jobs: int = 1) -> Any:
        """Execute all runs that have no result; return the experiment of the reader.

        Raises:
            MlereduxError: The plan can't be executed here, or no technique run was graded.
        """
        self._register()
        base = self.plan.model_dump(mode="json", exclude_unset=True, exclude={"findings"})
        arm = self.writer.model_dump(mode="json", exclude_unset=True, include=set(Arm.model_fields))
        questions = list(self._questions())
        self.say(f"{counted(len(questions), 'technique task')} on {counted(len(self.tasks), 'task')}")
        design = {"name": f"{self.plan.experiment.name}.writer", "tasks": questions, "seeds": self.writer.seeds}
        self._experiment({**base, "experiment": design, "arms": {"writer": {"agent": self.writer.agent, **arm}}}, jobs)
        self._write_contexts()
        self.say("the reader's runs")
        return self._experiment({**base, "arms": {name: self._arm(name) for name in self.writer.arms}}, jobs)

    def _experiment(self, plan: dict[str, Any], jobs: int) -> Any:
        return mleredux.experiment(plan, runs_dir=self.runs_dir, data_dir=self.data_dir).run(jobs=jobs)

    def _register(self) -> None:
        """Store the digest of the plan and the time, once for each version of the plan."""
        known = self.registered
        if self.digest not in known:
            known[self.digest] = datetime.now(UTC).isoformat(timespec="seconds")
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomically(self.folder / RECORD, json.dumps(known, indent=1) + "\n")

    @property
    def registered(self) -> dict[str, str]:
        """When each version of the plan was first executed, by its digest, the oldest first."""
        path = self.folder / RECORD
        digests: dict[str, str] = json.loads(path.read_bytes()) if path.is_file() else {}
        return digests

    def _questions(self) -> Iterator[str]:
        """Yield the technique tasks that apply; note the others with the reason."""
        for task in self.tasks:
            self.say(f"{task}: preparing the technique tasks")
            chosen = [f"{name}@{task}" for name in self.writer.techniques]
            refused: dict[str, str] = {}
            names = current().task_names((), (f"techniques@{task}",), refused)
            self.refused |= {name: why for name, why in refused.items() if not chosen or name in chosen}
            for name in names:
                if chosen and name not in chosen:
                    continue
                try:
                    mleredux.prepare(name, data_dir=self.data_dir)
                    yield name
                except NotApplicable as error:
                    self.refused[name] = error.message

    def rows(self, *, task: str | None = None) -> list[dict[str, Any]]:
        """Return the rows of the technique runs, as `collect` reads them."""
        name = f"{self.plan.experiment.name}.writer"
        return self.store.rows(task=task, experiment=name)

    def get(self, name: str, /) -> Run:
        """Return a run."""
        return self.store.get(name)

    def lessons(self, task: str, *, graded: bool = True) -> list[Lesson]:
        """Return the lessons of a task; empty if no run was graded."""
        try:
            return collect(self, task, graded=graded)
        except NotFound:
            return []

    @cached_property
    def graded(self) -> dict[str, list[Lesson]]:
        """The lessons of all tasks, by task."""
        lessons = {task: self.lessons(task) for task in self.tasks}
        if not any(lessons.values()):
            raise NotFound("No technique run was graded.", hint="`mleredux runs` lists them, with their messages.")
        return lessons

    def _write_contexts(self) -> None:
        for task in self.tasks:
            for form, known in contexts(task, self.graded, self.lessons(task, graded=False)).items():
                (self.folder / form).mkdir(exist_ok=True)
                write_atomically(self.folder / form / f"{task}.md", known)
            write_skill(task, self.graded[task], self.folder / "skill" / task / SKILL)

    def _arm(self, name: str) -> dict[str, Any]:
        """Return an arm: the reader, with a text, a skill or more compute."""
        arm = self.reader.model_dump(mode="json", exclude_unset=True)
        if name in FORMS:
            texts = {task: (self.folder / name / f"{task}.md").read_text(encoding="utf-8") for task in self.tasks}
            return {**arm, "contexts": texts}
        if name == "skill" and "skill" in self.agent.tools:
            grants = arm.get("grants", {})
            place = f"{self.folder.resolve()}/skill/{{task}}/{SKILL}"
            return {**arm, "grants": {**grants, "tools": [*grants.get("tools", ()), place]}}
        if name == "skill":  # an agent without skills gets the text of all files
            files = {task: skill_files(task, self.graded[task], SKILL).values() for task in self.tasks}
            return {**arm, "contexts": {task: "\n".join(known) for task, known in files.items()}}
        return _merged(arm, self.writer.compute or self._spent()) if name == "compute" else arm

    def _spent(self) -> dict[str, Any]:
        """Return the reader's limits plus the maximum usage of the technique runs of a task."""
        spent = [[row for row in self.rows() if row["task"].endswith(f"@{task}")] for task in self.tasks]
        seconds = max(sum(row["seconds"] or 0.0 for row in rows) for rows in spent)
        cost = max(sum(row["cost_usd"] or 0.0 for row in rows) for rows in spent)
        limits = {**self.agent.limits.model_dump(), **self.reader.limits.model_dump(exclude_none=True)}
        more = {"time_limit": limits["time_limit"] + round(seconds)}
        if limits.get("llm_cost_usd") is not None:
            more["llm_cost_usd"] = limits["llm_cost_usd"] + cost
        return {"limits": more}


def _merged(arm: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return an arm with changed fields; tables such as `options` are changed key by key."""
    return {
        **arm,
        **{key: {**arm.get(key, {}), **value} if isinstance(value, dict) else value for key, value in changes.items()},
    }
