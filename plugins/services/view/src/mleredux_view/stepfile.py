"""Rollouts of any length by step: each step is decoded once for an index, and again when it is shown."""

from __future__ import annotations

import json
import re
import threading
from array import array
from collections import Counter, OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from mleredux.plugin.files import open_below
from mleredux.plugin.rollout import Step
from pydantic import ValidationError

_KEPT = 4
_STEPS = re.compile(r'"steps"\s*:\s*\[')
_NEXT = re.compile(r"[\s,]*")
_ERROR = re.compile(r"Traceback \(most recent call last\)|^(?:\w+\.)*\w*(?:Error|Exception)\b", re.MULTILINE)
_NO_TOOL = 0
_SOURCES = ("system", "user", "agent")


class Totals(NamedTuple):
    """What all steps took; None where no step tells."""

    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None


class StepFile:
    """A `rollout.json` by its steps.

    Args:
        text: The document, as text.

    Attributes:
        tools: How many steps call each tool.
        errors: How many steps show an error.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._begins, self._kinds, self._tools_of = array("Q"), array("B"), array("H")
        self.tools: Counter[str] = Counter()
        self.errors, self._tool_ids = 0, {"": _NO_TOOL}
        self.sources: Counter[str] = Counter()
        prompt = completion = 0
        cost: float | None = None
        for begin, step in _steps(text):
            metrics = _dict(step.get("metrics"))
            prompt += _whole(metrics.get("prompt_tokens"))
            completion += _whole(metrics.get("completion_tokens"))
            if isinstance(spent := metrics.get("cost_usd"), int | float):
                cost = (cost or 0.0) + spent
            self._add(begin, step)
        self.totals = Totals(prompt, completion, cost)

    def __len__(self) -> int:
        return len(self._begins)

    def numbers(self, source: str = "", tool: str = "", error: bool = False, search: str = "") -> list[int]:
        """Return positions (from 0) of the steps that match all that is given."""
        found: Iterator[int] = iter(range(len(self)))
        if search:
            found = self._with(search)
        if source in _SOURCES:
            kind = _SOURCES.index(source)
            found = (at for at in found if self._kinds[at] & 3 == kind)
        if error:
            found = (at for at in found if self._kinds[at] & 4)
        if tool:
            wanted = self._tool_ids.get(tool, -1)
            found = (at for at in found if self._tools_of[at] == wanted)
        return list(found)

    def step(self, at: int) -> Step | None:
        """Return the step of a position; None if it breaks a rule of the format."""
        value, _ = json.JSONDecoder(strict=False).raw_decode(self._text, self._begins[at])
        try:
            return Step.model_validate(value)
        except ValidationError:
            return None

    def _with(self, search: str) -> Iterator[int]:
        """Yield positions of steps whose JSON has a text, in upper or lower case."""
        import bisect

        quoted = json.dumps(search, ensure_ascii=not search.isascii())[1:-1]
        last = -1
        for match in re.finditer(re.escape(quoted), self._text, re.IGNORECASE):
            at = bisect.bisect_right(self._begins, match.start()) - 1
            if at > last:
                last = at
                yield at

    def _add(self, begin: int, step: dict[str, Any]) -> None:
        source = step.get("source")
        kind = _SOURCES.index(source) if source in _SOURCES else 3
        calls = step.get("tool_calls") or []
        tool = str(_dict(calls[0]).get("function_name"))[:100] if isinstance(calls, list) and calls else ""
        if _has_error(step):
            kind |= 4
            self.errors += 1
        if tool:
            self.tools[tool] += 1
        if source in _SOURCES:
            self.sources[str(source)] += 1
        number = self._tool_ids.setdefault(tool, min(len(self._tool_ids), 65_535))
        self._begins.append(begin)
        self._kinds.append(kind)
        self._tools_of.append(number)


def _steps(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield where each step begins, and the step; the document's end may be missing."""
    decode = json.JSONDecoder(strict=False).raw_decode
    start = _STEPS.search(text)
    at = start.end() if start else len(text)
    while True:
        blank = _NEXT.match(text, at)
        at = blank.end() if blank else at
        if text[at : at + 1] != "{":
            return
        try:
            step, end = decode(text, at)
        except (ValueError, RecursionError):
            return
        yield at, step
        at = end


def _has_error(step: dict[str, Any]) -> bool:
    if _dict(step.get("extra")).get("is_buggy") is True:
        return True
    results = _dict(step.get("observation")).get("results")
    for result in results if isinstance(results, list) else ():
        content = _dict(result).get("content")
        if isinstance(content, str) and _ERROR.search(content):
            return True
    return False


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _whole(value: Any) -> int:
    return value if isinstance(value, int) else 0


_open: OrderedDict[Path, tuple[tuple[int, int, int], StepFile]] = OrderedDict()
_lock = threading.Lock()


def steps_of(root: Path, name: str = "rollout.json") -> StepFile | None:
    """Return a run's rollout by steps; None if it has none."""
    try:
        with open_below(root, name) as file, _lock:
            import os

            status = os.fstat(file.fileno())
            stamp = (status.st_size, status.st_mtime_ns, status.st_ino)
            kept = _open.get(root)
            if kept is None or kept[0] != stamp:
                kept = (stamp, StepFile(file.read().decode("utf-8", "backslashreplace")))
                _open[root] = kept
            _open.move_to_end(root)
            while len(_open) > _KEPT:
                _open.popitem(last=False)
            return kept[1]
    except OSError:
        return None
