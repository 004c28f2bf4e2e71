"""Categories of failures; if several ended a run together, the first in this order is the primary one."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any

NONE = "none"
"""Used instead of a category if nothing went wrong."""


@dataclass(frozen=True)
class Category:
    """A kind of failure.

    Attributes:
        mast: The corresponding failure modes of MAST.
        of_agent: Whether the agent is responsible.
    """

    id: str
    title: str
    mast: Sequence[str] = ()
    of_agent: bool = True

    @property
    def words(self) -> str:
        """Return its id as words."""
        return self.id.replace("-", " ")


CATEGORIES = {
    name: Category(name, **fields)
    for name, fields in tomllib.loads(files(__package__).joinpath("categories.toml").read_text("utf-8")).items()
}


@dataclass(frozen=True)
class Finding:
    """A failure detected by a rule.

    Attributes:
        kind: A finer name within the category, such as `columns` for an invalid submission.
        line: The line that shows the failure.
        where: The location of that line: a file of the run, a step or a version.
        overcome: Whether the run continued afterwards, so that this did not end it.
    """

    category: str
    line: str
    where: str
    kind: str | None = None
    overcome: bool = False

    def record(self) -> dict[str, Any]:
        """Return the record that `--json` prints."""
        return {**asdict(self), "title": CATEGORIES[self.category].title, "mast": self.mast}

    @property
    def mast(self) -> Sequence[str]:
        """Return the corresponding failure modes of MAST."""
        return CATEGORIES[self.category].mast


def primary(findings: Iterable[Finding]) -> str | None:
    """Return the category of the failure that ended a run or made it fall short; None if there is none."""
    return next((finding.category for finding in findings if not finding.overcome), None)
