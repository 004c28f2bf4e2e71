"""Findings of a check: collected until its end, then raised together."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator
from pathlib import Path

from mleredux._core.executors import Executor
from mleredux._core.protocols import Finding, Sandbox
from mleredux.errors import one_line
from mleredux.models.formats import counted


class NotConforming(AssertionError):
    """Something does not conform. The message lists all problems.

    Attributes:
        findings: All findings, including positive ones.
    """

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        wrong = f"{len(findings.wrong)} of {counted(len(findings.all), 'finding')} wrong"
        lines = [f"{findings.subject} does not conform; {wrong}:"]
        for number, finding in enumerate(findings.wrong, start=1):
            remedy = f" {finding.remedy}" if finding.remedy else ""
            lines.append(f"  {number}. {finding.name}: {finding.message}{remedy}")
        super().__init__("\n".join(lines))


class Findings:
    """Findings about one subject.

    Args:
        subject: The checked object, as the start of a sentence: `Task digits`.

    Attributes:
        all: Every finding, in order.
    """

    def __init__(self, subject: str) -> None:
        self.subject = subject
        self.all: list[Finding] = []

    @property
    def wrong(self) -> list[Finding]:
        """Findings that are problems."""
        return [finding for finding in self.all if not finding.ok]

    def good(self, name: str, message: str = "as it should be") -> None:
        """Record that something is in order, or that it was not checked and why."""
        self.all.append(Finding(name, True, message))

    def bad(self, name: str, message: str, remedy: str | None = None) -> None:
        """Record a problem."""
        self.all.append(Finding(name, False, message, remedy))

    def expect(self, name: str, condition: object, message: str, remedy: str | None = None) -> bool:
        """Record whether a condition holds; `message` states the problem if it does not."""
        if condition:
            self.good(name)
        else:
            self.bad(name, message, remedy)
        return bool(condition)

    @contextlib.contextmanager
    def looking_at(self, name: str) -> Iterator[None]:
        """Convert an exception in the block to a finding, so that the next check still runs."""
        try:
            yield
        except Exception as error:  # the checked object may raise anything
            frames = traceback.extract_tb(error.__traceback__)
            where = f" ({Path(frames[-1].filename).name} line {frames[-1].lineno})" if frames else ""
            self.bad(name, f"{one_line(error)}{where}")

    def close(self) -> Findings:
        """Raise `NotConforming` if there is a problem, else return the findings."""
        if self.wrong:
            raise NotConforming(self)
        return self


def expect_declared(findings: Findings, item: Sandbox | Executor, role: type, name: str) -> list[Finding]:
    """Check the methods and the title of a sandbox or an executor, and return its own report.

    Args:
        role: The protocol of such objects.
        name: Its public name.
    """
    findings.expect("role", isinstance(item, role), f"it lacks methods of {name}.")
    findings.expect("title", item.title.strip(), "it has no title.")
    own = list(item.check())
    valid = own and all(isinstance(check, Finding) for check in own)
    findings.expect("check", valid, "check() does not return findings.")
    for check in own:
        findings.expect(
            f"remedy of {check.name}", check.ok or check.remedy, f"check() reports {check.message!r} without a remedy."
        )
    return own
