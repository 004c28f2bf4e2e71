"""Categories of failures; of several that ended a run together, the first of this order is the primary one."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
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
    mast: Sequence[str] = ()
    of_agent: bool = True

    @property
    def words(self) -> str:
        """Its id as words."""
        return self.id.replace("-", " ")


CATEGORIES = {
    name: Category(name, **told)
    for name, told in tomllib.loads(files(__package__).joinpath("categories.toml").read_text("utf-8")).items()
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
    def mast(self) -> Sequence[str]:
        """Failure modes of MAST."""
        return CATEGORIES[self.category].mast


def primary(findings: Iterable[Finding]) -> str | None:
    """The category of what ended a run or made it fall short; None if nothing did."""
    return next((finding.category for finding in findings if not finding.overcome), None)
