"""Models of tasks. A competition is data, not a program."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, field_serializer

from mleredux.models.agent import Build
from mleredux.models.base import ID_PATTERN, Model
from mleredux.models.grader import Direction, Execution, Grader
from mleredux.models.schema import ColumnType

TASK_ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]*(\+[a-z0-9-]+)?(@[A-Za-z0-9][A-Za-z0-9._-]*(\+[a-z0-9-]+)?)?$"


class Metric(Model):
    """How a task is scored: the id of a grader (or the task's own grader), and its options."""

    grader: str | Grader
    """Id of an installed grader, or the task's own."""
    options: dict[str, Any] = {}
    """Options of the grader."""

    @property
    def id(self) -> str:
        """The grader's id."""
        return self.grader if isinstance(self.grader, str) else self.grader.id


class Submission(Model):
    """The format of the submission."""

    file: str = "submission.csv"
    """The name of the file in the agent's output folder."""
    sample: str | None = "sample_submission.csv"
    """A well-formed example among the public files, from which the submission schema is read. If the agent must not see
    the sample, give its path relative to the public files: `../private/sample_submission.csv`."""
    id_columns: tuple[str, ...] = ()
    """Columns that identify a row. Empty: rows are matched by position, or not at all."""
    target_columns: tuple[str, ...] = ()
    """Columns with the predictions. Empty: all columns of the sample except the id columns."""
    types: dict[str, ColumnType] = {}
    """Types of columns whose sample values are misleading, such as a text column that the sample fills with `0`."""
    ids_fixed: bool = True
    """Whether exactly the ids of the sample must occur, each once; False if agents choose the rows."""
    extra_columns: bool = True
    """Whether additional columns are ignored (True) or rejected (False)."""
    document: type[BaseModel] | None = None
    """The type of a submission that is a JSON document. It must be importable by name from its module, because
    validation imports it."""
    execution: Execution | None = None
    """For a submission that is a program: how it is executed during grading. `sample` is then a program, and columns
    and types are those of its predictions."""

    @field_serializer("document", when_used="json")
    def _name(self, document: type[BaseModel] | None) -> str | None:
        return f"{document.__module__}:{document.__qualname__}" if document is not None else None


class Thresholds(Model):
    """Scores that earn medals (at or better) and the median (strictly better)."""

    gold: float
    """The score for gold."""
    silver: float
    """The score for silver."""
    bronze: float
    """The score for bronze."""
    median: float
    """The median of the leaderboard."""


class KnownLeak(Model):
    """A leak that is also present in the test data, so that comparing training and test data cannot reveal it."""

    columns: tuple[str, ...] = Field(min_length=1)
    """Columns that together determine the target and would not be known at prediction time."""
    explanation: str
    """One sentence about why these columns contain the target."""


class Resources(Model):
    """The size of a task, for planning."""

    size_gb: float | None = None
    """Size of the raw data, if known."""
    cpus: float | None = None
    """CPU cores to plan for."""
    memory_mb: int | None = None
    """Memory in MiB to plan for."""
    gpus: int = 0
    """Number of GPUs to plan for."""
    time_limit: int | None = None
    """A reasonable time limit for an agent, in seconds, if the task declares one."""


class Task(Model):
    """A problem to solve, with public files, a submission format and a grader."""

    id: str = Field(pattern=TASK_ID_PATTERN)
    """The name to use in commands, unique among installed tasks."""
    version: str = "1"
    """Incremented whenever prepared bytes, the metric or the thresholds change."""
    kind: Literal["competition", "technique"] = "competition"
    """Whether the task is a competition or derived by a technique."""
    title: str
    """A short description for lists."""
    description: Path
    """A Markdown file for the agent."""
    description_obfuscated: Path | None = None
    """The description without the competition's name, sponsor and story."""
    prepare: Callable[[Path, Path, Path], None] | None = None
    """`prepare(raw, public, private)`; None if a plugin's `mleredux_prepare` does this."""
    fetch: Callable[[Path], None] | None = None
    """`fetch(raw)` writes the raw files into an empty folder; None if users provide them with `--from`. It may keep a
    partial download in the sibling folder `download`, to resume after an interruption; that folder is deleted once the
    raw files are complete. It reports progress with `mleredux.plugin.task.tell_progress`."""
    check_fetch: Callable[[], None] | None = None
    """Raises `DataError` if `fetch` would fail, for example because of missing credentials or rules that are not
    accepted; downloads nothing."""
    fetch_leaderboard: Callable[[Path], None] | None = None
    """`fetch_leaderboard(path)` writes the current leaderboard: a CSV with a column `score`, best first."""
    submission: Submission = Submission()
    """The file that agents submit."""
    answers: str = "answers.csv"
    """The name of the answers file in the private folder."""
    solution: Callable[[Task, Path], bytes] | None = None
    """`solution(task, private)` returns a submission with the best possible score; None: the answers, if they have the
    form of a submission."""
    metric: Metric
    """How submissions are scored."""
    direction: Direction
    """Whether a larger or a smaller score is better."""
    rounding: Literal["decimal", "numpy"] = "decimal"
    """How reports round the score to five decimals: correctly (`decimal`), or by NumPy's scaling (`x * 1e5`, to the
    nearest integer, `/ 1e5`), as in a published grader that returns a NumPy float. The two differ close to ties."""
    thresholds: Thresholds | None = None
    """Scores that earn medals; None: the task has no medals."""
    leaderboard: Path | None = None
    """A CSV with a column `score`, best first (may be compressed)."""
    known_answers: tuple[str, ...] = ()
    """Full names of library functions in agents' images that return this task's answers, such as
    `sklearn.datasets.load_digits`. Calling them taints a result. The data files of their packages are hidden from
    submitted programs, from agents in containers, and in verification."""
    checksums: dict[str, dict[str, str]] = {}
    """MD5 checksums of prepared files, if published: `"public"` or `"private"` → path → sum."""
    resources: Resources = Resources()
    """Size of the data, and resources to plan for."""
    known_leaks: tuple[KnownLeak, ...] = ()
    """Leaks that a competition declares; technique tasks treat them as true leaks."""
    category: str = "Tabular"
    """The kind of data, for filtering lists."""
    complexity: Literal["low", "medium", "high"] | None = None
    """The effort that a solution requires, for filtering lists."""
    sets: tuple[str, ...] = ()
    """Named sets the task belongs to: `low`, `dev`, `starter`."""
    tags: tuple[str, ...] = ()
    """Words for filtering lists."""
    variants: dict[str, Callable[[Any], Any]] = {}
    """Variant name → function that returns this task's variant (`spaceship-titanic+fixed`)."""
    license: str | None = None
    """The license of the data, as an SPDX expression; None: unknown, or rules that are not a license."""
    license_source: str | None = None
    """The URL where the license is stated or, without a license, a quote of the rules on redistribution, without
    a period."""
    note: str | None = None
    """A sentence for each report that states which other scores can't be compared with those of this task."""
    raw_id: str | None = None
    """The task whose raw data this one uses; None: its own."""
    environment: Build | None = None
    """The image in which agents work instead of the base image, for a task with its own environment. Agents are built
    on it, run only in isolated sandboxes and may write anywhere in it; `resources` are their default limits."""
    inner: Task | None = None
    """A task that asks for rows of the training data. The folder `dev` of the public files has its test set and sample;
    `inner` among the private files is its prepared folder. Agents can get scores on it (`--dev-score`)."""
    base: Task | None = None
    """The task whose prepared folder (with `public` and `private`) this task is prepared from, instead of raw data."""

    def describe(self, *, obfuscated: bool = False) -> str:
        """Return the description for the agent.

        Raises:
            TaskBroken: The description file is missing.
        """
        from mleredux.errors import TaskBroken, file_errors

        if (path := self.description_obfuscated if obfuscated else self.description) is None:
            raise TaskBroken(f"Task {self.id} has no obfuscated description.", hint="Run it without --obfuscated.")
        with file_errors(TaskBroken, f"The description of task {self.id}, {path}, can't be read"):
            return path.read_text(encoding="utf-8")


def known_answers(task: Task) -> tuple[str, ...]:
    """Return the library functions that return the answers of the task or of a task that it is prepared from."""
    return task.known_answers + (known_answers(task.base) if task.base is not None else ())


class Technique(Model):
    """A method of deriving tasks from other tasks: technique `cv` derives the task `cv@digits` from `digits`."""

    id: str = Field(pattern=ID_PATTERN)
    """The part of task names before `@`."""
    version: str = "1"
    """The version of the technique; results of different versions are not compared."""
    title: str
    """A short description for lists."""
    derive: Callable[[Task, str | None], Task]
    """`derive(task, variant)` returns the task `<id>[+variant]@<task.id>`, of kind `technique`, with `base=task`. It
    raises `NotApplicable`, with one sentence that gives the reason, if the technique does not apply to the task."""
    variants: tuple[str, ...] = ()
    """Names of variants, with a placeholder in capitals if there are many: `planted-SEED`."""
    categories: tuple[str, ...] = ()
    """Categories of tasks to which the technique applies, for lists; empty: all."""


class Competition(Task):
    """A task with medals and a leaderboard of human or reference-model entries."""

    kind: Literal["competition"] = "competition"
    """The kind of task: always `competition`."""
