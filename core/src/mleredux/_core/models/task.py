"""Tasks: what there is to solve. A competition is data, not a program."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, field_serializer

from mleredux._core.models.base import ID_PATTERN, Model
from mleredux._core.models.grader import Direction, Grader
from mleredux._core.models.schema import ColumnType

TASK_ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]*(\+[a-z0-9-]+)?(@[A-Za-z0-9][A-Za-z0-9._-]*(\+[a-z0-9-]+)?)?$"


class Metric(Model):
    """How a task is scored: a grader by its id (or a grader of the task's own), and its options."""

    grader: str | Grader
    options: dict[str, Any] = {}

    @property
    def id(self) -> str:
        """The grader's id."""
        return self.grader if isinstance(self.grader, str) else self.grader.id


class Submission(Model):
    """What an agent hands in."""

    file: str = "submission.csv"
    """The name of the file in the agent's output folder."""
    sample: str | None = "sample_submission.csv"
    """A well-formed example among the public files; the submission schema is read from it. One that is not for the
    agent is named relative to the public files all the same: `../private/sample_submission.csv`."""
    id_columns: tuple[str, ...] = ()
    """Columns that name a row. Empty: rows are matched by position, or not at all."""
    target_columns: tuple[str, ...] = ()
    """Columns with the predictions. Empty: all columns of the sample but the ids."""
    types: dict[str, ColumnType] = {}
    """Types of columns where the sample's values mislead (a column of texts that the sample fills with `0`)."""
    ids_fixed: bool = True
    """Whether exactly the sample's ids must occur, each once; False where an agent chooses its rows."""
    extra_columns: bool = True
    """Whether columns beside those of the sample are ignored (True) or refused."""
    document: type[BaseModel] | None = None
    """For a submission that is a JSON document: what it must be. Importable from its module by its name, for validation
    finds it there again."""

    @field_serializer("document", when_used="json")
    def _name(self, document: type[BaseModel] | None) -> str | None:
        return f"{document.__module__}:{document.__qualname__}" if document is not None else None


class Thresholds(Model):
    """Scores that earn medals (at or better) and the median (strictly better)."""

    gold: float
    silver: float
    bronze: float
    median: float


class Resources(Model):
    """What a task is like, for planning."""

    size_gb: float | None = None
    """Size of the raw data, where known."""
    cpus: float | None = None
    memory_mb: int | None = None
    gpus: int = 0
    time_limit: int | None = None
    """Seconds that are reasonable for an agent, where the task says so."""


class Task(Model):
    """Something to solve, with public files, a submission format and a grader."""

    id: str = Field(pattern=TASK_ID_PATTERN)
    version: str = "1"
    """Raised whenever prepared bytes, the metric or the thresholds change."""
    kind: Literal["competition", "technique"] = "competition"
    title: str
    description: Path
    """A Markdown file for the agent."""
    description_obfuscated: Path | None = None
    """The same without the competition's name, sponsor and story."""
    prepare: Callable[[Path, Path, Path], None] | None = None
    """`prepare(raw, public, private)`; None where a plugin's `mleredux_prepare` does it."""
    fetch: Callable[[Path], None] | None = None
    """`fetch(raw)` writes the raw files into an empty folder; None where they come with `--from`. It may keep half a
    download in the folder `download` beside it, to go on after an interruption; that goes once the raw files are there.
    How far it has come, it tells with `mleredux.plugin.task.tell_progress`."""
    fetch_leaderboard: Callable[[Path], None] | None = None
    """`fetch_leaderboard(path)` writes a fresh leaderboard: a CSV with a column `score`, best first."""
    submission: Submission = Submission()
    answers: str = "answers.csv"
    """The file of the answers in the private folder."""
    metric: Metric
    direction: Direction
    rounding: Literal["decimal", "numpy"] = "decimal"
    """How reports round the score to five decimals: correctly, or by NumPy's scaling (`x * 1e5`, to the nearest whole
    number, `/ 1e5`), as a published grader that returns a NumPy float does. They differ next to ties."""
    thresholds: Thresholds | None = None
    leaderboard: Path | None = None
    """A CSV with a column `score`, best first (may be compressed)."""
    checksums: dict[str, dict[str, str]] = {}
    """MD5 sums of prepared files, where published: `"public"` or `"private"` → path → sum."""
    resources: Resources = Resources()
    category: str = "Tabular"
    complexity: Literal["low", "medium", "high"] | None = None
    sets: tuple[str, ...] = ()
    """Named sets the task belongs to: `low`, `dev`, `starter`."""
    tags: tuple[str, ...] = ()
    variants: dict[str, Callable[[Any], Any]] = {}
    """Variant name → function from this task to the variant's (`spaceship-titanic+fixed`)."""
    note: str | None = None
    """One sentence that every report of it carries: what its scores can't be compared with."""
    raw_id: str | None = None
    """The task whose raw data this one uses; its own where None."""
    base: Task | None = None
    """The task whose prepared folder (with `public` and `private`) this one is prepared from, in place of raw data."""

    def describe(self, *, obfuscated: bool = False) -> str:
        """The text for the agent.

        Raises:
            TaskBroken: The description file is missing.
        """
        from mleredux.errors import TaskBroken

        path = self.description_obfuscated if obfuscated else self.description
        if path is None:
            raise TaskBroken(f"Task {self.id} has no obfuscated description.", hint="Run it without --obfuscated.")
        try:
            return path.read_text(encoding="utf-8")
        except OSError as error:
            raise TaskBroken(f"The description of task {self.id} can't be read: {error}.") from error


class Technique(Model):
    """A question that can be asked of other tasks: technique `cv` makes the task `cv@digits` of the task `digits`."""

    id: str = Field(pattern=ID_PATTERN)
    version: str = "1"
    title: str
    derive: Callable[[Task, str | None], Task]
    """`derive(task, variant)` makes the task `<id>[+variant]@<task.id>`, of kind `technique`, with `base=task`.
    It raises `NotApplicable` with one sentence on why, where the question makes no sense of the task."""
    variants: tuple[str, ...] = ()
    """Names of variants, a placeholder in capitals where there are many: `planted-SEED`."""
    categories: tuple[str, ...] = ()
    """Categories of tasks that the question makes sense of, for listing; empty: all."""


class Competition(Task):
    """A task with a leaderboard of people or reference models, and medals."""

    kind: Literal["competition"] = "competition"
