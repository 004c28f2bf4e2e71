"""The rules, one a function: evidence in, findings out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import groupby

from mleredux_experiments.failures.categories import CATEGORIES, Finding
from mleredux_experiments.failures.evidence import Evidence
from mleredux_experiments.failures.signs import (
    API,
    DEVICE,
    DISK,
    MEMORY,
    NETWORK,
    PACKAGE,
    PROCESSES,
    STUCK,
    TIME,
    Sign,
    every,
    kind_of,
    last_line,
)  # fmt: skip
from mleredux_experiments.results.table import MEDALS, Version

Rule = Callable[[Evidence], Iterator[Finding]]

_RESOURCES = {"memory": MEMORY, "disk": DISK, "processes": PROCESSES, "time": TIME, "device": DEVICE}
_VALIDATION = re.compile(
    r"train_test_split|cross_val|KFold|ShuffleSplit|TimeSeriesSplit|GridSearchCV|RandomizedSearchCV|validation|"
    r"\bval_|_val\b|\bvalid_|hold.?out|eval_set|\boof\b|early_stopping",
    re.IGNORECASE,
)
_TRAINED = re.compile(r"\.fit\(|\.train\(|fit_predict")
_DROPPED = re.compile(r"drop|exclude|ignore|remove|\bdel\b|\bpop\b|!=|not in")
"""Lines that name a column in order not to use it."""
_KINDS = (
    (
        "file",
        re.compile(r"can't be read|is a link|is a folder|is a directory|too large|not a CSV|is empty|encod", re.I),
    ),
    ("columns", re.compile(r"column", re.I)),
    ("rows", re.compile(r"\brows?\b.*(?:expected|instead|has|have)|number of rows|rows are missing", re.I)),
    ("ids", re.compile(r"\bids?\b", re.I)),
    ("missing values", re.compile(r"NaN|missing value|blank|empty cell|no value|lacks a value", re.I)),
    ("values", re.compile(r"between|range|finite|number|not one of|unknown|label|value", re.I)),
)
_PROBABILITIES = ("log-loss", "roc-auc", "auc", "brier", "cross-entropy")
_EARLY, _HALF = 0.2, 0.5
_SAME = 3


def environment(evidence: Evidence) -> Iterator[Finding]:
    """The environment or the task broke."""
    if evidence.row.cause in ("environment_broke", "task_broken"):
        yield Finding("environment", evidence.message, "events.jsonl", evidence.row.cause)


def api(evidence: Evidence) -> Iterator[Finding]:
    """A budget was used up, or calls were refused or failed, and no medal came of it."""
    if evidence.row.above_median:
        return
    llm = evidence.llm
    if llm.get("exhausted"):
        yield Finding("api", f"The budget {llm['exhausted']} was used up.", "ledger", "budget")
    elif (llm.get("failed") or 0) >= max(_SAME, 0.5 * (llm.get("calls") or 0)):
        yield Finding("api", f"{llm['failed']} of {llm.get('calls')} calls failed.", "ledger", "failed")
    else:
        yield from (
            replace(finding, kind=kind_of(finding.line, API)) for finding in _last_line(evidence, every(API), "api")
        )


def time_out(evidence: Evidence) -> Iterator[Finding]:
    """The time limit ended it, and nothing valid was there; avoidable where half of the time had passed."""
    row = evidence.row
    if row.cause != "agent_timed_out" and evidence.limit != "time":
        return
    if any(version.valid for version in row.versions):
        return
    first = row.versions[0].seconds if row.versions else None
    if row.time_limit and (first is None or first > _HALF * row.time_limit):
        yield Finding("avoidable-timeout", evidence.message or "The time limit ended the agent.", "events.jsonl")
    yield Finding("resources", evidence.message or "The time limit ended the agent.", "events.jsonl", "time")


def resources(evidence: Evidence) -> Iterator[Finding]:
    """Memory, disk, processes or the time of a command ran out, or there is no GPU."""
    for kind, signs in _RESOURCES.items():
        if kind != "time" and (evidence.limit == kind or evidence.row.cause == f"out_of_{kind}"):
            yield Finding("resources", evidence.message, "events.jsonl", kind)
        else:
            yield from _last_line(evidence, signs, "resources", kind)


def crash_at_end(evidence: Evidence) -> Iterator[Finding]:
    """A valid version was followed by an invalid one, or by a crash."""
    versions = evidence.row.versions
    good = [number for number, version in enumerate(versions, start=1) if version.valid]
    if not good:
        return
    if not evidence.row.valid or not versions[-1].valid:
        line = evidence.message or f"version {len(versions)} is invalid"
        yield Finding("crash-at-end", line, f"version {good[-1]} was valid", "submission lost")
    elif evidence.row.cause == "agent_crashed":
        yield Finding("crash-at-end", *(_last_error(evidence) or (evidence.message, "logs/agent.log")), "crash")


def package(evidence: Evidence) -> Iterator[Finding]:
    """A package was missing or of the wrong version, and what came after it did not get over it."""
    yield from _last_line(evidence, PACKAGE, "package", "missing package")


def network(evidence: Evidence) -> Iterator[Finding]:
    """Something could not be downloaded."""
    yield from _last_line(evidence, NETWORK, "network", "download")


def debug_loop(evidence: Evidence) -> Iterator[Finding]:
    """Three steps or more in succession with the same error."""
    for error, steps in groupby(evidence.steps, key=lambda step: step.same_error):
        looped = list(steps)
        if error is not None and len(looped) >= _SAME:
            where = f"steps {looped[0].number} to {looped[-1].number}"
            yield Finding("debug-loop", looped[-1].error or error, where, error.partition(":")[0])
            return


def submission(evidence: Evidence) -> Iterator[Finding]:
    """The last submission is missing or invalid."""
    row = evidence.row
    if row.status == "cancelled":
        return
    if not row.made:
        line, where = _last_error(evidence) or (evidence.message or "There is no submission.", "report.json")
        yield Finding("no-submission", line, where)
    elif not row.valid:
        kind = next((name for name, pattern in _KINDS if pattern.search(evidence.message)), "other")
        yield Finding("invalid-submission", evidence.message, "report.json", kind)


def misread(evidence: Evidence) -> Iterator[Finding]:
    """The agent optimizes in the wrong direction, or gives labels where the metric wants probabilities."""
    row = evidence.row
    wrong = [step for step in evidence.steps if step.lower_is_better is not None and step.validation is not None]
    if row.made and wrong and all(step.lower_is_better != row.lower_is_better for step in wrong):
        better = "lower" if row.lower_is_better else "higher"
        yield Finding(
            "metric-misread",
            f"{better} is better; the agent looks for the opposite",
            f"step {wrong[-1].number}",
            "direction",
        )
        return
    measured = [version for version in row.versions if version.validation is not None and version.valid]
    if len(measured) >= _SAME and not row.above_median:
        sign = -1 if row.lower_is_better else 1
        values = [sign * (version.validation or 0.0) for version in measured]
        if values[-1] == min(values) < max(values) and values == sorted(values, reverse=True):
            yield Finding(
                "metric-misread",
                "each version is worse than the one before by its own measurement",
                "versions",
                "direction",
            )
            return
    if (
        row.valid
        and not row.above_median
        and row.metric is not None
        and any(name in row.metric for name in _PROBABILITIES)
        and evidence.distinct == 2
    ):
        yield Finding(
            "metric-misread", f"two different predictions for the metric {row.metric}", "the submission", "labels"
        )


def generalization(evidence: Evidence) -> Iterator[Finding]:
    """The own measurement promises far more than the score: by a leak, or by overfitting."""
    row = evidence.row
    if row.validation is None or row.score is None:
        return
    sign = -1 if row.lower_is_better else 1
    gap = sign * (row.validation - row.score)
    scale = abs(row.gold - row.median) if row.gold is not None and row.median is not None else None
    scale = scale or 0.1 * max(abs(row.validation), abs(row.score))
    if gap <= scale or row.medal:
        return
    line = f"measured {row.validation:g}, scored {row.score:g}"
    lines = [one for one in evidence.code.splitlines() if not _DROPPED.search(one)] if evidence.leaks else []
    used = [name for name in evidence.leaks if any(re.search(rf"\b{re.escape(name)}\b", one) for one in lines)]
    if used:
        yield Finding("leak-used", f"{line}; the code uses {used[0]}", "output/code")
    yield Finding("overfitting", line, "report.json")


def selection(evidence: Evidence) -> Iterator[Finding]:
    """An earlier valid version would have earned a better medal."""
    row = evidence.row
    final = _rank(row.medal)
    ranked = [(_rank(row.medal_of(version.score)), number) for number, version in _valid(row.versions)]
    if row.valid and ranked and min(ranked)[0] < final:
        rank, number = min(ranked)
        yield Finding("selection", f"version {number} would have won {MEDALS[rank]}", f"version {number}")


def repetition(evidence: Evidence) -> Iterator[Finding]:
    """The same code three times or more, by its steps or by what the agent itself says."""
    if evidence.row.medal:
        return
    counts = Counter(step.code for step in evidence.steps if step.code is not None)
    code, most = counts.most_common(1)[0] if counts else (None, 0)
    if most >= _SAME:
        same = [step for step in evidence.steps if step.code == code]
        yield Finding(
            "repetition",
            same[-1].action.strip().splitlines()[0],
            f"steps {', '.join(str(step.number) for step in same[:5])}",
        )
    else:
        yield from _last_line(evidence, STUCK, "repetition")


def under_use(evidence: Evidence) -> Iterator[Finding]:
    """It ended by itself in a fifth of its time, and is not above the median."""
    row = evidence.row
    if (
        row.status == "done"
        and evidence.exit_code == 0
        and row.valid
        and not row.above_median
        and row.median is not None
        and row.time_limit
        and evidence.seconds < _EARLY * row.time_limit
    ):
        yield Finding("under-use", f"used {evidence.seconds:.0f} of {row.time_limit:.0f} seconds", "events.jsonl")


def no_validation(evidence: Evidence) -> Iterator[Finding]:
    """Code that trains, and measures nothing."""
    row = evidence.row
    if (
        not row.made
        or row.above_median
        or row.median is None
        or any(one.validation is not None for one in evidence.steps)
    ):
        return
    acted = "\n".join([evidence.code, *(step.action for step in evidence.steps)])
    if (trained := _TRAINED.search(evidence.code)) and not _VALIDATION.search(acted):
        yield Finding("no-validation", trained.group(), "output/code")


RULES: tuple[Rule, ...] = (
    environment, api, time_out, resources, crash_at_end, package, network, debug_loop, submission, misread,
    generalization, selection, repetition, under_use, no_validation,
)  # fmt: skip


def findings_in(evidence: Evidence) -> tuple[Finding, ...]:
    """The findings of a run, the primary one first; none where nothing went wrong, or it was cancelled."""
    if evidence.row.status not in ("done", "failed", "timed_out"):
        return ()
    order = list(CATEGORIES)
    found = [finding for rule in RULES for finding in rule(evidence)]
    if any(not CATEGORIES[finding.category].of_agent for finding in found):
        return tuple(finding for finding in found if not CATEGORIES[finding.category].of_agent)
    if any(finding.category in ("api", "package") for finding in found):  # which say what could not be downloaded
        found = [finding for finding in found if finding.category != "network"]
    return tuple(sorted(found, key=lambda finding: order.index(finding.category)))


def _last_line(evidence: Evidence, signs: Iterable[Sign], category: str, kind: str | None = None) -> Iterator[Finding]:
    """The last line with a sign, warnings aside; none if the run came to a valid submission all the same."""
    if not evidence.row.valid and (found := last_line(evidence, signs)):
        yield Finding(category, found[0].strip()[:300], found[1], kind)


def _last_error(evidence: Evidence) -> tuple[str, str] | None:
    """The last line of the log that names an error, and where it is."""
    for place in range(len(evidence.log) - 1, -1, -1):
        if re.match(r"(?:\w+\.)*\w*(?:Error|Exception)\b", line := evidence.log[place]):
            return line.strip()[:300], evidence.log_line(place)
    return None


def _rank(medal: str | None) -> int:
    return MEDALS.index(medal) if medal in MEDALS else len(MEDALS)


def _valid(versions: tuple[Version, ...]) -> list[tuple[int, Version]]:
    return [(number, version) for number, version in enumerate(versions, start=1) if version.valid]
