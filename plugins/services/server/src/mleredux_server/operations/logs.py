"""The server's log: one line per event, as text or JSON, including the log records of libraries.

Client input can't begin a line, end one, or move the cursor of a terminal; tokens and passwords in events are masked.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import threading
import traceback
from collections.abc import MutableMapping
from typing import Any, Literal, TextIO

import structlog

LEVELS = ("debug", "info", "warning", "error")
Format = Literal["text", "json"]

_EventDict = MutableMapping[str, Any]
_FIRST = ("time", "level", "event")
_SECRETS = (
    (re.compile(r"mlr_[A-Za-z0-9_-]{4,}"), "mlr_[masked]"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9+/=._~-]{4,}"), r"\1 [masked]"),
    (re.compile(r"([a-z][a-z0-9+.-]*://[^\s/:@]*:)[^\s/@]+(?=@)"), r"\1[masked]"),
    (re.compile(r"(?i)\b(password|passwd|secret|api_key|token)=[^\s&;,'\"]+"), r"\1=[masked]"),
)
_PLAIN = re.compile(r"[\w./:@+<>{}\[\]*?-]+", re.ASCII)
_LONGEST = 8192


def configure(form: Format = "text", level: str = "info", stream: TextIO | None = None) -> None:
    """Route structlog, the standard library's loggers, warnings and uncaught thread exceptions to one log.

    Args:
        form: `text` or `json`.
        level: The minimum level that is written, one of `LEVELS`.
        stream: Output stream; None means standard error.
    """
    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", key="time"),
        structlog.contextvars.merge_contextvars,
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,  # so that later calls affect the modules' loggers
    )
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.addFilter(_is_no_duplicate)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.add_logger_name],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                _show_exception,
                _mask,
                as_json if form == "json" else as_text,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for noisy in ("asyncio", "httpx", "httpcore", "urllib3", "alembic", "sqlalchemy", "docker"):
        logging.getLogger(noisy).setLevel(max(logging.WARNING, root.level))
    logging.captureWarnings(True)
    threading.excepthook = _thread_died


def as_json(_logger: Any, _method: str, event: _EventDict) -> str:
    """Render one JSON object, in ASCII."""
    ordered = {name: event[name] for name in _FIRST if name in event} | dict(event)
    return json.dumps(ordered, default=str)


def as_text(_logger: Any, _method: str, event: _EventDict) -> str:
    """Render `TIME LEVEL EVENT name=value …`; lines of an exception follow, indented."""
    rest = dict(event)
    time, level, what = (str(rest.pop(name, "")) for name in _FIRST)
    exception = rest.pop("exception", None)
    line = f"{time} {level:<7} {_printable(what)}"
    line += "".join(f" {name}={_value(value)}" for name, value in rest.items())
    if exception:
        line += "".join(f"\n    | {_printable(part)}" for part in str(exception).splitlines())
    return line


def masked(text: str) -> str:
    """Mask tokens, passwords in URLs, and the like."""
    for pattern, shown in _SECRETS:
        text = pattern.sub(shown, text)
    return text


def _value(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    if isinstance(value, str) and not _PLAIN.fullmatch(text):
        text = '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return _printable(text)


def _printable(text: str) -> str:
    """Escape control characters, line separators, surrogates and bidirectional control characters."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def _mask(_logger: Any, _method: str, event: _EventDict) -> _EventDict:
    return {name: _masked_value(value) for name, value in event.items() if value is not None}


def _masked_value(value: Any) -> Any:
    if isinstance(value, str):
        return masked(value if len(value) <= _LONGEST else value[:_LONGEST] + "…")
    if isinstance(value, int | float):
        return value
    return masked(str(value)[:_LONGEST])


def _show_exception(_logger: Any, _method: str, event: _EventDict) -> _EventDict:
    """Render the end of the traceback; it never includes values of variables."""
    error = event.pop("exc_info", None)
    if error is True:
        error = sys.exc_info()
    if isinstance(error, tuple):
        error = error[1]
    if isinstance(error, BaseException):
        event["exception"] = "".join(traceback.format_exception(error))[-_LONGEST:]
    return event


def _is_no_duplicate(record: logging.LogRecord) -> bool:
    """Drop Uvicorn's duplicate of a line that was already logged with the request's id."""
    return not (record.name == "uvicorn.error" and str(record.msg).startswith("Exception in ASGI application"))


def _thread_died(died: threading.ExceptHookArgs) -> None:
    structlog.get_logger().error("a thread died", thread=getattr(died.thread, "name", None), exc_info=died.exc_value)
