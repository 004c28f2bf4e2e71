"""What lines of consoles look like that show an error, in many languages; and measurements that programs print."""

from __future__ import annotations

import re
from signal import Signals, strsignal

FRAME = " \t|│┃⎿>╎"
"""What consoles and agents put before the lines of an output."""
_PREFIX = (
    r"""^(?:[^\w'"`/({.<]+|\(\w+(?: pid=\d+)?[^)]*\)(?=\s)|\d[\d:.,/TZ+-]*(?=[\s|\]])|[EWIF]\d{4}(?=\s)|(?:\w+\.)*\w+(?::[\w<>]+)*(?::\d+)?\s?[-|\]](?=\s)"""
    r"|(?:DEBUG|INFO|NOTICE|SUCCESS|ERROR|Error(?! in )|error|ERR|CRITICAL|FATAL|SEVERE|stderr|stdout|Uncaught|Unhandled|uncaught"
    r"|rank\d+|E|\w+ pid=\d+|Caused by|caused by|cause|Exception in thread \S+|(?:in )?thread \S+|exception|LoadError)(?=\W))*+"
)
"""What loggers, consoles and other languages put before the class of an exception."""
_CLASS = re.compile(
    _PREFIX + r"(?:[\w.]+: )?(?:[A-Za-z_$][\w$]*(?:\.|::|/))*"
    r"([A-Za-z_]\w*(?:Error|Exception|Interrupt|Warning|Exit|Failure|Panic))(?: \[\w+\])?(?=:(?:\s|$)|\s*$|\().*$"
)
_COMMAND = re.compile(
    r"^[^\"“]*(?:command not found|\btimed out\b.*)$"
    r"""|^(?:[\w./+-]+(?:\(\d+\))?: |\[|npm )*(?:ERROR|ERR!|[Ee]rror(?:\[\w+\])?|FATAL|[Ff]atal|panic|CRITICAL|critical libmamba|E)[\]:]*:? (?=[A-Za-z'"`(\[*])(?!.*[,{]$).*$"""
    r"|^[^a-z]{0,40}(?<![A-Z])(?:ERROR|CRITICAL|FATAL|SEVERE)\b\W.*$"
    r"|^[^\"“]*(?:Segmentation fault|core dumped|terminate called|\bpanicked at\b|Illegal instruction).*$"
    r"|^Error in .*:.*$|^(?:[\w./-]+: )+(?:line \d+: )?.*(?:No such file or directory|Permission denied|[Rr]ead-only file system)$"
)
"""What shells and commands print that failed."""
WORDS = (
    *("error", "exception", "interrupt", "exit", "not found", "timed out", "fatal", "fault", "terminate", "http/"),
    *("panic", "failure", "denied", "no such file", "critical", "severe", "read-only", "err!", "e: ", "instruction"),
)
"""Each error has one of these."""
_SHELL = re.compile(r": ((?:command )?not found|No such file or directory|Permission denied|[Rr]ead-only file system)$")
_LEVEL = re.compile(_PREFIX + r"(?:(?:[\w./-]+: )*(?:[Ee]rror|ERROR|[Ff]atal|FATAL|panic|critical):\s)?(?=\w)")
_THROWN = re.compile(r"instance of '(?:\w+::)*(\w+)'")
CONSEQUENCE = re.compile(
    r"CalledProcessError|ChildFailedError|SystemExit|KeyboardInterrupt|Warning\b|returned non-zero|Execution halted|"
    r"[Ee]xit (?:code|status):? \d|npm (?:ERR!|error) A complete log|make(?:\[\d+\])?: \*\*\*"
)
"""What programs print of an error in a program that they have started."""
HTTP = re.compile(r"\bHTTP/\d(?:\.\d)? [45]\d\d\b")
"""What clients log of calls that failed."""
PROSE = re.compile(
    r"[Ww]arning|\b(?:are|be|is|get|gets|you|your|will|must|should|may)\b.{0,20}\b(?:killed|stopped|SIGTERM|SIGKILL)\b"
    r"|\bI(?:'(?:ll|m|ve|d))?\b(?![/.]) |\b(?:my|[Ww]e|[Ll]et's|[Ii]nstead of)\b(?! (?:couldn't|could not|can't|cannot))|^\W*[-*•] [A-Z`].*\.$"
)
"""Warnings, what texts say that may happen, and what agents say themselves."""
CHAINED = ("During handling of the above exception", "The above exception was the direct cause")
RESUMED = re.compile(
    r"\b(?:wrote|written|saved|saving)\b.*(?:submission|prediction|\.csv|\.parquet|model|rows)"
    r"|\b(?:rmse|mae|auc|acc(?:uracy)?|f1|log.?loss|loss|score|fold|epoch)\b[^.]{0,30}\d",
    re.IGNORECASE,
)
"""What programs print that work."""
PARTICULARS = re.compile(r"0x[0-9a-f]+|\d+|'[^']*'|\"[^\"]*\"|/[\w./-]+")

_METRICS = {
    "auc": "auc|roc.?auc|auroc",
    "accuracy": "acc(?:uracy)?",
    "log-loss": "log.?loss|nll|cross.?entropy",
    "mae": "mae|mean.absolute.error",
    "rmse": "rmse|root.mean.squared.error",
    "kappa": "kappa|qwk",
    "r2": "r2|r²|r.squared",
}
"""Names of metrics in what programs print; other metrics have the names of their ids."""
RESCALED = re.compile(r"\blog1p\b|\bexpm1\b|\bnp\.log\b|StandardScaler\(\)\.fit_transform\(y")
"""What code does whose errors are on another scale than the score."""
_HELD_OUT = re.compile(r"\b(?:cv|oof|val\w*|hold.?out|fold|out.of.fold|dev|cross.validat\w*)", re.IGNORECASE)


def measurements(metric: str, text: str) -> dict[str, list[float]]:
    """The values of a metric in what programs print, on rows that are `held out` and on `other` ones."""
    names = next((names for name, names in _METRICS.items() if name in metric.lower()), re.sub(r"[\W_]+", ".?", metric))
    shown = re.compile(
        rf"(?:^|[\s_(/-])(?:{names})\b(?:\W|is|of|score|mean|=)*?[:=\s]+(-?\d+\.?\d*(?:e-?\d+)?)(?=[\s,;)%|±+]|$)",
        re.IGNORECASE | re.MULTILINE,
    )
    found: dict[str, list[float]] = {"held out": [], "other": []}
    for one in shown.finditer(text):
        before = text[text.rfind("\n", 0, one.start() + 1) + 1 : one.start(1)][-60:]
        found["held out" if _HELD_OUT.search(before) else "other"].append(float(one[1]))
    return found


def is_error(line: str) -> re.Match[str] | None:
    """The match of a line that shows an error."""
    return _CLASS.match(line) or _COMMAND.match(line)


def kind_of(line: str) -> str:
    """The class of the exception of a line that shows an error, a signal, or the words of another message."""
    if signals := [one.name for one in Signals if (strsignal(one) or "-") in line]:
        return signals[0]
    if named := _CLASS.match(line) or _THROWN.search(line):
        return named[1]
    if shell := _SHELL.search(line):
        return shell[1]
    return re.split(r"[:(\n]", _LEVEL.sub("", line))[0].strip()[:60] or line[:60]
