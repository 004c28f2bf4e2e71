"""Categories of failures; of several that ended a run together, the first of this order is the primary one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

NONE = "none"
"""In place of a category: nothing went wrong."""


@dataclass(frozen=True)
class Category:
    """A kind of failure.

    Attributes:
        mast: Failure modes of MAST that it corresponds to.
        of_agent: Whether it is the agent's.
    """

    id: str
    title: str
    mast: tuple[str, ...] = ()
    of_agent: bool = True

    @property
    def words(self) -> str:
        """Its id as words."""
        return self.id.replace("-", " ")


CATEGORIES = {
    category.id: category
    for category in (
        Category("cancelled", "stopped by its user", of_agent=False),
        Category("environment", "the environment or the task broke", of_agent=False),
        Category("api", "the language model refused, failed, or its budget was used up"),
        Category("avoidable-timeout", "stopped at the time limit with nothing submitted by half of it", ("FM-1.5",)),
        Category("resources", "memory, disk, processes or time ran out, or there is no GPU"),
        Category("crash-at-end", "a valid submission was lost or followed by a crash", ("FM-3.1",)),
        Category("package", "a package is missing or of the wrong version"),
        Category("network", "something could not be downloaded: no network, or no access"),
        Category("debug-loop", "the same error three times or more in succession", ("FM-1.3",)),
        Category("invalid-submission", "the last submission is invalid", ("FM-1.1",)),
        Category("code-error", "an error of the code ended it"),
        Category("no-submission", "nothing was submitted", ("FM-1.5",)),
        Category("leak-used", "a leaking column was used, and the score fell on the test", ("FM-3.3",)),
        Category("metric-misread", "the metric or its direction was misread", ("FM-1.1",)),
        Category("overfitting", "the own measurement is far better than the score", ("FM-3.3",)),
        Category("selection", "an earlier version would have earned a better medal", ("FM-3.3",)),
        Category("repetition", "the same code three times or more", ("FM-1.3",)),
        Category("ended-early", "ended its search early by itself, below the median", ("FM-3.1",)),
        Category("no-validation", "no validation in the code", ("FM-3.2",)),
    )
}


@dataclass(frozen=True)
class Finding:
    """A failure that a rule found.

    Attributes:
        kind: A finer name within the category, such as `columns` of an invalid submission.
        line: The line that shows it.
        where: Where that line is: a file of the run, a step, a version.
        overcome: Whether the run continued after it, so that it is not why it failed.
    """

    category: str
    line: str
    where: str
    kind: str | None = None
    overcome: bool = False

    def record(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return {**asdict(self), "title": CATEGORIES[self.category].title, "mast": self.mast}

    @property
    def mast(self) -> tuple[str, ...]:
        """Failure modes of MAST."""
        return CATEGORIES[self.category].mast


def primary(findings: Iterable[Finding]) -> str | None:
    """The category of what ended a run or made it fall short; None if nothing did."""
    return next((finding.category for finding in findings if not finding.overcome), None)
