"""The rules, one per function: each takes evidence and yields findings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import groupby
from signal import Signals

from mleredux.models.formats import counted, duration, plain

from mleredux_experiments.failures.categories import CATEGORIES, Finding
from mleredux_experiments.failures.errors import FRAME, INVALID, PATTERNS, SIGNS, Sign, is_prose, kind_of
from mleredux_experiments.failures.evidence import Evidence
from mleredux_experiments.results.table import MEDALS, Row, Version

Rule = Callable[[Evidence], Iterator[Finding]]
Signs = list[tuple[str, str, Sign]]

_STOPPED = ("agent_timed_out", "out_of_memory", "out_of_disk", "out_of_processes")
"""Causes recorded by the supervisor."""
_PROBABILITIES = ("log-loss", "roc-auc", "auc", "brier", "cross-entropy")
_EARLY, _HALF = 0.2, 0.5
_SAME = 3
_OWN = ("code-error", "package", "network")
"""Categories of errors that count as overcome if a submission follows them."""
_MORE = {"network": {"api", "package"}, "code-error": {"debug-loop"}}
"""Categories that are more specific than another."""
_LAST = 10
"""Number of lines at the end of a log that show why an agent ended."""


def environment(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding if the user stopped the run, or if the environment or the task broke."""
    row = evidence.row
    if row.status == "cancelled":
        yield Finding("cancelled", evidence.message or "Its user stopped it.", "events.jsonl")
    elif row.cause in ("environment_broke", "task_broken"):
        yield Finding("environment", evidence.message, "events.jsonl", row.cause)


def calls(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding if a budget of calls was used up, or most calls failed, and the run earned no medal."""
    llm = evidence.llm
    if evidence.row.above_median:
        return
    if llm.get("exhausted"):
        yield Finding("api", f"The budget {llm['exhausted']} was used up.", "ledger", "budget")
    elif (llm.get("failed") or 0) >= max(_SAME, 0.5 * (llm.get("calls") or 0)):
        yield Finding("api", f"{llm['failed']} of {counted(llm.get('calls') or 0, 'call')} failed.", "ledger", "failed")


def time_out(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding if the time limit ended a run without a valid submission; it counts as avoidable after half of
    the time."""
    row = evidence.row
    if row.cause != "agent_timed_out" and evidence.limit != "time":
        return
    if row.valid or any(version.valid for version in row.versions):
        return
    first = row.versions[0].seconds if row.versions else None
    if row.time_limit and (first is None or first > _HALF * row.time_limit):
        yield Finding("avoidable-timeout", evidence.message or "The time limit ended the agent.", "events.jsonl")
    yield Finding("resources", evidence.message or "The time limit ended the agent.", "events.jsonl", "time")


def limits(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding if the supervisor stopped the run at a limit other than the time limit."""
    for kind in SIGNS["resources"]:
        if kind != "time" and (evidence.limit == kind or evidence.row.cause == f"out_of_{kind}"):
            line = evidence.message or f"The limit of {kind} ended the agent."
            yield Finding("resources", line, "events.jsonl", kind)


def submission_lost(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding if a valid version was followed by an invalid one."""
    versions = evidence.row.versions
    good = [number for number, version in enumerate(versions, start=1) if version.valid]
    if good and not (evidence.row.valid and versions[-1].valid):
        line = evidence.message or f"version {len(versions)} is invalid"
        yield Finding("crash-at-end", line, f"version {good[-1]} was valid", "submission lost")


def last_error(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for the last error, and separate ones for errors that were overcome."""
    row = evidence.row
    stopped = evidence.limit is not None or row.cause in _STOPPED or row.status == "cancelled"
    signs = _present(evidence)
    ending = evidence.ending(lambda line, small: any(sign(line, small) for _, _, sign in signs))
    if stopped or (row.valid and not evidence.crashed):
        ending = range(len(evidence.lines), len(evidence.lines))
    ended = row.submitted and not evidence.crashed  # with a submission, after errors of the agent
    findings = [*_named(evidence, signs, ending, errors_only=ended)] or [*_unnamed(evidence, signs, ending)]
    findings = findings or [*_last_words(evidence)] * (not stopped and not ended)
    findings = [replace(finding, overcome=ended and finding.category in _OWN) for finding in findings]
    yield from findings
    before = range(ending.start)
    earlier = [*_named(evidence, signs, before, errors_only=True), *_unnamed(evidence, signs, before)]
    yield from (replace(finding, overcome=True) for finding in earlier)


def _present(evidence: Evidence) -> Signs:
    """Return the signs, by category and kind, of which at least one word occurs in the run's output."""
    text = "\n".join(small for _, small, _ in evidence.lines)
    return [
        (category, kind, sign)
        for category, kinds in SIGNS.items()
        for kind, signs in kinds.items()
        for sign in signs
        if any(map(text.__contains__, sign.words))
    ]


def _named(evidence: Evidence, signs: Signs, places: range, *, errors_only: bool = False) -> Iterator[Finding]:
    """Yield, for each category and kind, the last of these lines with its sign, ignoring warnings."""
    seen: set[str] = set()
    for at in reversed(places) if signs else ():
        line, small, where = evidence.lines[at]
        if is_prose(line) or (errors_only and not evidence.is_error(at)):
            continue
        for category, kind, sign in signs:
            group = kind if category == "resources" else category
            if group not in seen and sign(line, small):
                seen.add(group)
                yield Finding(category, line.strip()[:300], where, kind)


def _unnamed(evidence: Evidence, signs: Signs, places: range) -> Iterator[Finding]:
    """Yield the last of these lines that shows an error without a sign, as a code error whose kind is the exception."""
    for at in reversed(places):
        line, small, where = evidence.lines[at]
        if evidence.is_error(at) and not any(sign(line, small) for _, _, sign in signs):
            category = "code-error" if at in evidence.raised else _of_command(evidence, at)
            yield Finding(category, line.strip()[:300], where, kind_of(evidence.error(at)))
            return


def _of_command(evidence: Evidence, at: int) -> str:
    """Return the category of an error without a sign: that of the tool in the last command before it."""
    before = (PATTERNS["tool"].search(line) for line, *_ in evidence.lines[max(at - _LAST, 0) : at])
    return ["code-error", *(str(tool.lastgroup).replace("_", "-") for tool in before if tool)][-1]


def _last_words(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for a crash without a recognized error: based on the signal, else on the last line before it."""
    last = [(line, where) for line, _, where in evidence.lines if line.strip()][-_LAST:]
    codes = [int(code[1]) for line, _ in last for code in PATTERNS["status"].finditer(line)][-1:]
    killed = evidence.killed_by or next((signal for signal in Signals if {-signal, signal + 128} & {*codes}), None)
    shown = [line for line in last if not any(PATTERNS[name].search(line[0]) for name in ("decoration", "consequence"))]
    if name := "a timeout" if 124 in (evidence.exit_code, *codes) else killed and killed.name:
        ends = {"a timeout": ("resources", "time"), "SIGKILL": ("resources", "memory")}
        category, kind = ends.get(name, ("code-error", name))
        yield Finding(category, f"The exit code of a process indicates {name}.", "events.jsonl", kind)
    elif shown and evidence.crashed and not PATTERNS["resumed"].search(shown[-1][0]):
        if any(PATTERNS["spent"].search(line) for line, _ in last[-2:]):
            return
        line, where = shown[-1]
        yield Finding("code-error", line.strip()[:300], where, kind_of(line.strip(FRAME)))


def debug_loop(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for three or more successive errors that are equal except for numbers, paths and quoted names."""
    errors = evidence.errors
    for error, same in groupby(errors, key=evidence.shape):
        looped = list(same)
        if len(looped) >= _SAME:
            first, last = (evidence.lines[at][2] for at in (looped[0], looped[-1]))
            line, overcome = evidence.error(looped[-1])[:300], evidence.row.valid or looped[-1] != errors[-1]
            yield Finding("debug-loop", line, f"{first} to {last}", error.partition(":")[0], overcome)


def submission(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding if the last submission is missing or invalid."""
    row = evidence.row
    if not row.submitted:
        yield Finding("no-submission", evidence.message or "There is no submission.", "report.json")
    elif not row.valid:
        kind = next((name for name, pattern in INVALID.items() if pattern.search(evidence.message)), "other")
        yield Finding("invalid-submission", evidence.message, "report.json", kind)


def misread(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding if the agent optimizes in the wrong direction, or submits labels where the metric expects
    probabilities."""
    row = evidence.row
    wrong = [step for step in evidence.steps if step.lower_is_better is not None and step.validation is not None]
    if row.submitted and wrong and all(step.lower_is_better != row.lower_is_better for step in wrong):
        better = "lower" if row.lower_is_better else "higher"
        line = f"{better} is better; the agent does the opposite"
        yield Finding("metric-misread", line, f"step {wrong[-1].number}", "direction")
        return
    measured = [version for version in row.versions if version.validation is not None and version.valid]
    if len(measured) >= _SAME and not row.above_median:
        values = [row.sign * (version.validation or 0.0) for version in measured]
        if values[-1] == min(values) < max(values) and values == sorted(values, reverse=True):
            line = "each version is worse than the one before by its own measurement"
            yield Finding("metric-misread", line, "versions", "direction")
            return
    of_probabilities = any(name in (row.metric or "") for name in _PROBABILITIES)
    if row.valid and not row.above_median and of_probabilities and evidence.distinct == 2:
        line = f"two different predictions for the metric {row.metric}"
        yield Finding("metric-misread", line, "the submission", "labels")


def generalization(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding if the agent's own measurement is far better than the score, because of a leak or overfitting."""
    row = evidence.row
    own = row.validation is not None  # measured for the submitted solution, else for one that was tried
    measured, scored = (row.validation, row.score) if own else (evidence.measured, _best(row))
    if measured is None or scored is None or row.score is None:
        return
    gap = row.sign * (measured - scored)
    scale = abs(row.gold - row.median) if row.gold is not None and row.median is not None else 0.0
    worse = gap > scale if scale else _is_worse(row, scored, measured, 0.5, 0.05)
    if not worse or row.medal:
        return
    line = f"measured {plain(measured, 6)}, scored {plain(scored, 6)}"
    code = evidence.code.splitlines() if evidence.leaks else ()
    lines = [text for text in code if not PATTERNS["dropped"].search(text)]
    if used := [name for name in evidence.leaks if any(re.search(rf"\b{re.escape(name)}\b", text) for text in lines)]:
        yield Finding("leak-used", f"{line}; the code uses {used[0]}", "output/code")
    yield Finding("overfitting", line, "report.json")


def selection(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding if three or more steps have the same code, unless the run earned a medal."""
    row = evidence.row
    final = _rank(row.medal)
    ranked = [(_rank(row.medal_of(version.score)), number) for number, version in _valid(row.versions)]
    if row.valid and ranked and min(ranked)[0] < final:
        rank, number = min(ranked)
        yield Finding("selection", f"version {number} would have won {MEDALS[rank]}", f"version {number}")
        return
    best = _best(row)
    if not row.valid or row.medal or row.score is None or best is None:
        return
    if _is_worse(row, row.score, best, 0.1):
        number = next(number for number, version in _valid(row.versions) if version.score == best)
        scores = f"version {number} scored {plain(best, 6)}, the last one {plain(row.score, 6)}"
        yield Finding("selection", scores, f"version {number}")


def repetition(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding if the same code ran three or more times, according to its steps or to the agent itself."""
    if evidence.row.medal:
        return
    counts = Counter(step.code for step in evidence.steps if step.code is not None)
    code, most = counts.most_common(1)[0] if counts else (None, 0)
    if most >= _SAME:
        same = [step for step in evidence.steps if step.code == code]
        steps = ", ".join(str(step.number) for step in same[:5])
        yield Finding("repetition", same[-1].action.strip().splitlines()[0], f"steps {steps}")


def ended_early(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding if an agent that searches ended on its own within a fifth of its time, not above the median."""
    row = evidence.row
    last = "\n".join(evidence.log[-_LAST:])
    finished = row.status == "done" and evidence.exit_code == 0 and not PATTERNS["spent"].search(last)
    content = row.valid or (not row.submitted and PATTERNS["content"].search(last))
    below = row.median is not None and not row.above_median
    early = row.time_limit and evidence.seconds < _EARLY * row.time_limit
    if finished and content and below and early and evidence.searches:
        used = f"used {duration(evidence.seconds)} of {duration(row.time_limit or 0)}"
        yield Finding("ended-early", used, "events.jsonl")


def no_validation(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for code that trains but measures nothing."""
    row = evidence.row
    measured = any(step.validation is not None for step in evidence.steps)
    if not row.submitted or row.above_median or row.median is None or measured:
        return
    acted = "\n".join([evidence.code, *(step.action for step in evidence.steps)])
    if (trained := PATTERNS["trained"].search(evidence.code)) and not PATTERNS["validation"].search(acted):
        yield Finding("no-validation", trained.group(), "output/code")


RULES: tuple[Rule, ...] = (
    environment, calls, time_out, limits, submission_lost, last_error, debug_loop, submission, misread,
    generalization, selection, repetition, ended_early, no_validation,
)  # fmt: skip


def findings_in(evidence: Evidence) -> tuple[Finding, ...]:
    """Return the findings of a run, the primary one first and those that were overcome last."""
    if evidence.row.status not in ("done", "failed", "timed_out", "cancelled"):
        return ()
    order = list(CATEGORIES)
    findings = [finding for rule in RULES for finding in rule(evidence)]
    others = [finding for finding in findings if not finding.overcome and not CATEGORIES[finding.category].of_agent]
    if others:
        findings = [*others, *(finding for finding in findings if finding.overcome)]
    now = {finding.category for finding in findings if not finding.overcome}
    earlier = [finding for finding in findings if finding.overcome and finding.category == "network"]
    findings = [finding for finding in findings if finding in earlier or not now & _MORE.get(finding.category, set())]
    if "ended-early" in now:  # earlier errors did not end the search
        findings = [replace(item, overcome=item.overcome or item.category == "code-error") for item in findings]
    if "debug-loop" in now:  # the loop is the cause of using up the steps
        findings = [finding for finding in findings if (finding.category, finding.kind) != ("api", "budget")]
    named = {(item.category, item.kind) for item in findings if not item.overcome}
    findings = [item for item in findings if not item.overcome or (item.category, item.kind) not in named]
    return tuple(sorted(findings, key=lambda finding: (finding.overcome, order.index(finding.category))))


def _best(row: Row) -> float | None:
    """Return the best score among the submission and its valid versions."""
    scores = (row.score, *(version.score for _, version in _valid(row.versions)))
    return (min if row.lower_is_better else max)((score for score in scores if score is not None), default=None)


def _is_worse(row: Row, score: float, than: float, share: float, least: float = 0.02) -> bool:
    """Return whether a score is worse by more than a share of the other's error: its distance from 1, or from 0 for a
    loss."""
    if row.lower_is_better:
        return score - than > share * abs(than)
    return than - score > max(share * (1 - than), least) if max(score, than) <= 1 else than - score > share * abs(than)


def _rank(medal: str | None) -> int:
    return MEDALS.index(medal) if medal in MEDALS else len(MEDALS)


def _valid(versions: tuple[Version, ...]) -> list[tuple[int, Version]]:
    return [(number, version) for number, version in enumerate(versions, start=1) if version.valid]
