"""Replay answers from the record of an earlier run instead of calling language models: offline, free and deterministic.

A request receives the answer to the first request with the same content that was not replayed yet. Differences between
any two runs (their ids and folders, ports on this machine) and fields that do not affect answers are ignored; answers
with the recorded run's folders get those of this run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mleredux_llm_protocols import Kind

IGNORED = ("prompt_cache_key", "safety_identifier", "store", "stream", "stream_options", "user")
_PLACES = re.compile(r"(?:127\.0\.0\.1|localhost):\d+|mleredux-\d+-links/[0-9a-f]{16}")
"""Ports on this machine, and links to folders of runs."""
_SHOWN = 120


class Replay:
    """The calls of a record to be replayed. It must be used from a single thread.

    Args:
        source: The id of the recorded run.
        calls: Calls as returned by `read_calls`.
        renamed: Texts of the recorded run with their replacements in this run: its folder and its id.
        mask: Masks secrets in text, as in the record.

    Attributes:
        repeated: Number of calls that were answered.
        differences: A sentence for each call that could not be answered.
    """

    def __init__(
        self,
        source: str,
        calls: Iterable[dict[str, Any]],
        renamed: Sequence[tuple[str, str]],
        mask: Callable[[str], str],
    ) -> None:
        self.source, self.repeated, self.differences = source, 0, list[str]()
        self._mask, self._number = mask, 0
        answered = [call for call in calls if isinstance(call.get("request"), dict) and call.get("status")]
        self._calls = [_replaced(call, renamed) for call in sorted(answered, key=lambda call: int(call["call"]))]
        self._forms = [_compared(call["request"]) for call in self._calls]
        self._left = list(range(len(self._calls)))

    @property
    def models(self) -> tuple[str, ...]:
        """Return the models that were called, by the names that the agent used."""
        return tuple(dict.fromkeys(str(call["request"].get("model")) for call in self._calls))

    @property
    def left(self) -> int:
        """Return the number of calls not replayed yet."""
        return len(self._left)

    def answer(self, kind: Kind, body: dict[str, Any]) -> dict[str, Any] | str:
        """Return the recorded call with the same request, or a sentence about why there is none."""
        self._number += 1
        form, places = _compared(json.loads(self._mask(json.dumps(body))))
        for number in self._left:
            if self._forms[number][0] == form and self._calls[number].get("kind") == kind:
                self._left.remove(number)
                return self._repeated(_replaced(self._calls[number], zip(self._forms[number][1], places, strict=True)))
        nearest = next((number for number in self._left if self._calls[number].get("kind") == kind), None)
        sentence = f"Call {self._number} has no counterpart: all calls of {self.source} were repeated."
        if nearest is not None:
            place, before, now = difference(json.loads(self._forms[nearest][0]), json.loads(form))
            sentence = (
                f"Call {self._number} differs from call {self._calls[nearest]['call']} of {self.source} at {place}: "
                f"it was {before}, and is now {now}."
            )
        self.differences.append(sentence)
        return sentence

    def _repeated(self, call: dict[str, Any]) -> dict[str, Any] | str:
        if call.get("response") is None and int(call["status"]) == 200:
            self.differences.append(f"Call {self._number} can't be repeated: {self.source} received no response to it.")
            return self.differences[-1]
        self.repeated += 1
        return call


def _replaced(call: dict[str, Any], replacements: Iterable[tuple[str, str]]) -> dict[str, Any]:
    text = json.dumps(call)
    for before, now in replacements:
        text = text.replace(json.dumps(before)[1:-1], json.dumps(now)[1:-1])
    return dict(json.loads(text))


def _compared(body: dict[str, Any]) -> tuple[str, list[str]]:
    """Return the compared content of a request, without metadata, ids that clients give to items, and places; also
    return these places, in order."""
    kept = {name: value for name, value in body.items() if name not in IGNORED and "metadata" not in name}
    if isinstance(items := kept.get("input"), list):
        named = [isinstance(item, dict) and item.get("type") != "item_reference" for item in items]
        kept["input"] = [{**item, "id": None} if own else item for item, own in zip(items, named, strict=True)]
    text = json.dumps(kept, sort_keys=True)
    return _PLACES.sub("PLACE", text), _PLACES.findall(text)


def difference(before: Any, now: Any, place: str = "") -> tuple[str, str, str]:
    """Return the place where two requests first differ, and what each contains there."""
    if isinstance(before, dict) and isinstance(now, dict):
        for name in dict.fromkeys((*before, *now)):
            if before.get(name) != now.get(name):
                return difference(before.get(name), now.get(name), f"{place}.{name}" if place else name)
    if isinstance(before, list) and isinstance(now, list):
        for number, (old, new) in enumerate(zip(before, now, strict=False)):
            if old != new:
                return difference(old, new, f"{place}[{number}]")
        shorter = min(len(before), len(now))
        return (f"{place}[{shorter}]", *(_shown(part[shorter:][:1], 0) for part in (before, now)))  # type: ignore[return-value]
    start = 0
    if isinstance(before, str) and isinstance(now, str):
        same = (number for number, (old, new) in enumerate(zip(before, now, strict=False)) if old != new)
        start = next(same, min(len(before), len(now)))
    return place or "the request", _shown(before, start), _shown(now, start)


def _shown(value: Any, start: int) -> str:
    """Return a value for a sentence; for text, an excerpt around the position where it differs."""
    if value is None or value == []:
        return "nothing"
    text = value if isinstance(value, str) else json.dumps(value)
    begin = max(0, start - 20)
    shown = " ".join(text[begin : begin + _SHOWN].split())
    return f"“{'…' if begin else ''}{shown}{'…' if begin + _SHOWN < len(text) else ''}”"
