"""Rollouts of any length by step: decoded once for an index, in a thread, and again when a step is shown."""

from __future__ import annotations

import bisect
import json
import math
import os
import re
import threading
from array import array
from collections import Counter, OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mleredux.plugin.files import open_below
from mleredux_artifact_reports.shared import Acted
from mleredux_rollout import MAX_BYTES, Step
from pydantic import ValidationError

from mleredux_view.tree import MOST, Node

_KEPT = 2
_PIECE = 4 << 20
_STEPS = re.compile(r'"steps"\s*:\s*\[')
_NEXT = re.compile(r"[\s,]*")
_ERROR = re.compile(r"Traceback \(most recent call last\)|^(?:\w+\.)*\w*(?:Error|Exception)\b", re.MULTILINE)
_SOURCES = ("system", "user", "agent")
_HAS_ERROR = 4


class StepFile:
    """A rollout that is read by steps.

    Args:
        text: The document.

    Attributes:
        tools, sources: Number of steps by the first tool that they call, and by source.
        errors: Number of steps that show an error.
        nodes: The first nodes of the search tree.
        acted: When each step was taken, and the tools that it calls.
        complete: Whether all steps are indexed.
        prompt_tokens, completion_tokens, cost_usd: Usage and cost of all steps; None if no step states its cost.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._begins, self._kinds, self._tools_of = array("Q"), array("B"), array("H")
        self._tool_ids = {"": 0}
        self.tools: Counter[str] = Counter()
        self.sources: Counter[str] = Counter()
        self.errors = self.prompt_tokens = self.completion_tokens = 0
        self.cost_usd: float | None = None
        self.nodes: list[Node] = []
        self.acted: list[Acted] = []
        self._grown = threading.Condition()
        self.complete = False
        threading.Thread(target=self._index, daemon=True).start()

    def __len__(self) -> int:
        return len(self._begins)

    def wait(self, count: int | None = None) -> None:
        """Wait until this number of steps is indexed, or all."""
        with self._grown:
            self._grown.wait_for(lambda: self.complete or (count is not None and len(self) >= count), timeout=60)

    def numbers(self, source: str = "", tool: str = "", error: bool = False, search: str = "") -> list[int]:
        """Return positions (from 0) of the steps that match all arguments."""
        matches: Iterator[int] = iter(range(len(self)))
        if search:
            matches = self._with(search)
        if source in _SOURCES:
            kind = _SOURCES.index(source)
            matches = (at for at in matches if self._kinds[at] & 3 == kind)
        if error:
            matches = (at for at in matches if self._kinds[at] & _HAS_ERROR)
        if tool:
            wanted = self._tool_ids.get(tool, -1)
            matches = (at for at in matches if self._tools_of[at] == wanted)
        return list(matches)

    def step(self, at: int) -> Step | None:
        """Return the step at a position; None if it violates the format."""
        value, _ = json.JSONDecoder(strict=False).raw_decode(self._text, self._begins[at])
        try:
            return Step.model_validate(value)
        except ValidationError:
            return None

    def _with(self, search: str) -> Iterator[int]:
        """Yield positions of steps whose JSON contains this text, ignoring case."""
        quoted, last = json.dumps(search, ensure_ascii=self._text.isascii())[1:-1], -1
        for place in _places(self._text, quoted):
            at = bisect.bisect_right(self._begins, place) - 1
            if at > last:
                last = at
                yield at

    def _index(self) -> None:
        try:
            for begin, step in _steps(self._text):
                self._add(begin, step)
                if len(self) % 1000 == 51:
                    with self._grown:
                        self._grown.notify_all()
        finally:
            with self._grown:
                self.complete = True
                self._grown.notify_all()

    def _add(self, begin: int, step: dict[str, Any]) -> None:
        source, calls = step.get("source"), step.get("tool_calls") or []
        kind = _SOURCES.index(source) if source in _SOURCES else 3
        names = [str(_dict(call).get("function_name"))[:100] for call in calls] if isinstance(calls, list) else []
        tool, extra = names[0] if names else "", _dict(step.get("extra"))
        self.acted.append((step.get("timestamp"), extra.get("seconds"), names))
        if _has_error(step):
            kind |= _HAS_ERROR
            self.errors += 1
        if tool:
            self.tools[tool] += 1
        if source in _SOURCES:
            self.sources[str(source)] += 1
        if (name := extra.get("node_id")) and len(self.nodes) < MOST:
            metric = extra.get("validation_metric")
            value = float(metric) if isinstance(metric, int | float) and math.isfinite(metric) else None
            parent = str(extra.get("parent_id") or "")[:100]
            self.nodes.append(Node(len(self) + 1, str(name)[:100], parent, value, extra.get("is_buggy") is True))
        metrics = _dict(step.get("metrics"))
        self.prompt_tokens += _whole(metrics.get("prompt_tokens"))
        self.completion_tokens += _whole(metrics.get("completion_tokens"))
        if isinstance(spent := metrics.get("cost_usd"), int | float):
            self.cost_usd = (self.cost_usd or 0.0) + spent
        self._kinds.append(kind)
        self._tools_of.append(self._tool_ids.setdefault(tool, min(len(self._tool_ids), 65_535)))
        self._begins.append(begin)


def _steps(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the start of each step, and the step; the end of the document may be missing."""
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


def _places(text: str, wanted: str) -> Iterator[int]:
    """Yield positions of one text in another, ignoring case, piece by piece."""
    pattern, lower = re.compile(re.escape(wanted), re.IGNORECASE), wanted.lower()
    for begin in range(0, len(text), _PIECE):
        piece = text[begin : begin + _PIECE + len(wanted) - 1]
        if piece.isascii():
            piece, place = piece.lower(), -1
            while (place := piece.find(lower, place + 1)) >= 0:
                yield begin + place
        else:
            yield from (begin + match.start() for match in pattern.finditer(piece))


def _has_error(step: dict[str, Any]) -> bool:
    if _dict(step.get("extra")).get("is_buggy") is True:
        return True
    results = _dict(step.get("observation")).get("results")
    for result in results if isinstance(results, list) else ():
        content = _dict(result).get("content")
        if isinstance(content, str) and ("Error" in content or "Exc" in content or "Trace" in content):
            return _ERROR.search(content) is not None
    return False


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _whole(value: Any) -> int:
    return value if isinstance(value, int) else 0


_open: OrderedDict[Path, tuple[tuple[int, int, int], StepFile]] = OrderedDict()
_lock = threading.Lock()


def steps_of(root: Path, name: str = "rollout.json") -> StepFile | None:
    """Return a document of a run by steps; None if it does not exist."""
    try:
        with open_below(root, name) as file, _lock:
            status = os.fstat(file.fileno())
            stamp, key = (status.st_size, status.st_mtime_ns, status.st_ino), root / name
            kept = _open.pop(key, None)
            if kept is None or kept[0] != stamp:
                kept = (stamp, StepFile(file.read(MAX_BYTES).decode("utf-8", "backslashreplace")))
            _open[key] = kept
            while len(_open) > _KEPT:
                _open.popitem(last=False)
            return kept[1]
    except OSError:
        return None
