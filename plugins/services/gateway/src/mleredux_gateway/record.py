"""The record of a run's calls: `llm/calls.jsonl`, one line per call.

Content that a request repeats from an earlier one is not stored again. The field `same` lists the omitted fields:
`{"tools": 3}` is the value from call 3, `{"messages": [12, 40]}` the first 40 messages of call 12, which precede those
of the line. `read_calls` restores it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

FOLDER = "llm"
CALLS = "calls.jsonl"
BEGUN = "begun.jsonl"
MAX_BYTES = 2 << 30
"""Maximum size of the record in bytes; beyond it, requests and responses are omitted."""
_REMEMBERED = 32
_WORTH_SAYING = 200
_LISTS = ("messages", "input", "contents")


class Record:
    """Appends to the record of one run. It must be used from a single thread.

    Args:
        folder: The run's folder `llm`.
        mask: Masks secrets in text.
    """

    def __init__(self, folder: Path, mask: Callable[[str], str]) -> None:
        folder.mkdir(exist_ok=True)
        self._mask = mask
        self._paths = {name: folder / name for name in (CALLS, BEGUN)}
        for path in self._paths.values():
            _drop_partial_line(path)
        self.calls = [_without_content(call) for call in _lines(self._paths[CALLS])]
        """Earlier calls of the run, without requests and responses."""
        finished = {call["call"] for call in self.calls}
        begun = {line["call"]: line for line in _lines(self._paths[BEGUN])}
        self.interrupted = [line for number, line in begun.items() if number not in finished]
        """Calls that were in progress when the program was killed."""
        self.next: int = max([*finished, *begun, 0]) + 1
        self._earlier: dict[int, dict[str, Any]] = {}

    def begin(self, fields: dict[str, Any]) -> None:
        """Record a call before it is forwarded, so that it counts even if its end is never observed."""
        self._append(BEGUN, json.dumps(fields))

    def end(self, fields: dict[str, Any], request: dict[str, Any] | None, response: Any) -> None:
        """Record a finished call.

        Args:
            fields: Fields including `call`, the number of the call.
            request: The request's body.
            response: The response's body, assembled if it was streamed.
        """
        if self._paths[CALLS].exists() and self._paths[CALLS].stat().st_size > MAX_BYTES:
            self._append(CALLS, json.dumps({**fields, "left_out": "The record is too large."}))
            return
        line = dict(fields)
        if request is not None:
            line["same"], line["request"] = self._shortened(int(fields["call"]), request)
        line["response"] = response
        self._append(CALLS, json.dumps(line, ensure_ascii=False))

    def _append(self, name: str, line: str) -> None:
        # Unpaired surrogates are valid JSON for some clients, but never valid UTF-8.
        data = self._mask(line).encode("utf-8", "replace") + b"\n"
        descriptor = os.open(self._paths[name], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            remaining = memoryview(data)
            while remaining:
                remaining = remaining[os.write(descriptor, remaining) :]
        finally:
            os.close(descriptor)

    def _shortened(self, call: int, request: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return references to content repeated from earlier calls, and the rest of the request."""
        same: dict[str, Any] = {}
        rest: dict[str, Any] = {}
        marks: dict[str, Any] = {}
        for name, value in request.items():
            if name in _LISTS and isinstance(value, list):
                marks[name] = [_digest(item) for item in value]
                earlier, count = self._longest(name, marks[name])
                rest[name] = value[count:]
                if count:
                    same[name] = [earlier, count]
            else:
                marks[name] = _digest(value)
                twin = next((n for n, known in self._earlier.items() if known.get(name) == marks[name]), None)
                if twin is not None and len(json.dumps(value)) > _WORTH_SAYING:
                    same[name] = twin
                else:
                    rest[name] = value
        self._earlier[call] = marks
        while len(self._earlier) > _REMEMBERED:
            del self._earlier[next(iter(self._earlier))]
        return same, rest

    def _longest(self, name: str, marks: list[str]) -> tuple[int, int]:
        best = 0, 0
        for number, known in self._earlier.items():
            theirs = known.get(name)
            if not isinstance(theirs, list):
                continue
            count = 0
            for mine, other in zip(marks, theirs, strict=False):
                if mine != other:
                    break
                count += 1
            if count > best[1]:
                best = number, count
        return best


def read_calls(path: Path) -> Iterator[dict[str, Any]]:
    """Read the calls of a record in the order in which they ended, with complete requests.

    Args:
        path: The file `llm/calls.jsonl` of a run.

    Yields:
        Per call: `call` (its number), `time`, `seconds`, `kind` (chat, responses, messages, generate), `model`,
        `stream`, `upstream`, `host`, `status`, `prompt_tokens`, `cached_tokens`, `completion_tokens`, `estimated`,
        `cost_usd`, `refused` (why it was not forwarded), `error`, `request`, `response`.
    """
    whole: dict[int, dict[str, Any]] = {}
    for line in _lines(path):
        request = line.get("request")
        if isinstance(request, dict):
            for name, source in line.pop("same", {}).items():
                if isinstance(source, list):
                    request[name] = whole[source[0]][name][: source[1]] + request[name]
                else:
                    request[name] = whole[source][name]
            whole[line["call"]] = request
        yield line


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield complete lines; a partial last line is due to a kill."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield json.loads(line)


def _drop_partial_line(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError), path.open("rb+") as file:
        content = file.read()
        if content and not content.endswith(b"\n"):
            file.truncate(content.rfind(b"\n") + 1)


def _without_content(call: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in call.items() if name not in ("request", "response", "same")}


def _digest(value: Any) -> str:
    return hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=12).hexdigest()
