"""Advice about the data in a run's context: findings in the curriculum's lines, or as JSON.

The context is part of the task's description. A line of the curriculum is a strategy with its columns, below the
heading of its technique; JSON is in a fenced block, with at least one of the fields of `Advice`. Unreadable text is
ignored: anyone may have written the context.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from typing import Any

Strategy = dict[str, Any]
"""`name` and the arguments of a strategy, with the names used in technique tasks."""

_HEADING = re.compile(r"^#+\s*(.*)$")
_UNDECIDED = re.compile(r"not (?:significant|scored)")
_LINE = re.compile(r"^- ([A-Za-z_0-9]+)(?:\((.*?)\))?(?:: ((?:`[^`]+`(?:, )?)+))?$")
_DROP = re.compile(r"^- drop_(columns|duplicates): (.*) \([a-z_]+\)$")
_ARGUMENT = re.compile(r"(\w+)=(`[^`]+`(?: before '[^']*')?|'[^']*'|\{[^}]*\}|\[[^\]]*\]|[^,]+)")
_JSON = re.compile(r"^```json\s*\n(.*?)^```", re.M | re.S)
_SECTIONS = {"encoding": "encoders", "missing": "imputers", "scaling": "scalers"}
_FOLDS = re.compile(r"\w*(KFold|Split)$")
_WEIGHTS = ("class_weight", "RandomOverSampler", "RandomUnderSampler", "SMOTE", "TunedThresholdClassifierCV")


@dataclass
class Advice:
    """How to treat the data; None or empty if the context does not specify it.

    Attributes:
        drop_columns: Columns not to use.
        drop_shared_rows: Whether to drop training rows that also occur in the test table.
        folds: A scikit-learn splitter whose `groups` and `time_column` are columns.
        encoders: Encoders of categories by column.
        imputers: Imputers by column.
        scalers: Scalers by column.
        class_weight: `balanced` or `none`; None if not specified.
    """

    drop_columns: list[str] = field(default_factory=list)
    drop_shared_rows: bool = False
    folds: Strategy | None = None
    encoders: dict[str, Strategy] = field(default_factory=dict)
    imputers: dict[str, Strategy] = field(default_factory=dict)
    scalers: dict[str, Strategy] = field(default_factory=dict)
    class_weight: str | None = None

    def __bool__(self) -> bool:
        return self != Advice()

    def as_json(self) -> dict[str, Any]:
        """Return the specified fields, in the form of the JSON document."""
        return {name: value for name, value in asdict(self).items() if value not in ([], {}, None, False)}


def read_advice(description: str) -> Advice:
    """Read the advice in a task's description; the first statement wins, and JSON comes before lines.

    Of recommendations that made no significant difference when executed, only folds and exclusions are followed: they
    depend on how the test set was made, so their effect can't be measured within the training rows.
    """
    advice = Advice()
    for block in _JSON.findall(description):
        _add_json(advice, block)
    section, decided = "", True
    for line in description.splitlines():
        if heading := _HEADING.match(line):
            section, decided = heading[1].lower(), True
        elif line.startswith("Recommended ("):
            decided = _UNDECIDED.search(line) is None
        elif line.startswith("- "):
            statement, _, effect = line.rstrip().partition(" — ")  # a line of a skill ends with its effect
            _add_line(advice, statement, section, decided=decided and not _UNDECIDED.search(effect))
    return advice


def _add_json(advice: Advice, block: str) -> None:
    try:
        document = json.loads(block)
    except (ValueError, RecursionError):
        return
    if not isinstance(document, dict) or not set(document) <= {item.name for item in fields(Advice)}:
        return
    if isinstance(names := document.get("drop_columns"), list):
        advice.drop_columns += [name for name in names if isinstance(name, str)]
    advice.drop_shared_rows |= document.get("drop_shared_rows") is True
    advice.folds = advice.folds or next(_strategies([document.get("folds")]), None)
    for kind in ("encoders", "imputers", "scalers"):
        if isinstance(chosen := document.get(kind), dict):
            for name, strategy in chosen.items():
                for item in _strategies([strategy]):
                    getattr(advice, kind).setdefault(name, item)
    if document.get("class_weight") in ("balanced", "none"):
        advice.class_weight = advice.class_weight or document["class_weight"]


def _strategies(items: list[Any]) -> Iterator[Strategy]:
    for item in items:
        if isinstance(item, str):
            yield {"name": item}
        elif isinstance(item, dict) and isinstance(item.get("name"), str):
            yield item


def _add_line(advice: Advice, line: str, section: str, *, decided: bool) -> None:
    if dropped := _DROP.match(line):
        advice.drop_columns += _columns(dropped[2])
        advice.drop_shared_rows |= dropped[1] == "duplicates"
        return
    match = _LINE.match(line)
    if match is None:
        return
    strategy: Strategy = {"name": match[1], **{name: _value(text) for name, text in _ARGUMENT.findall(match[2] or "")}}
    kind = next((kind for word, kind in _SECTIONS.items() if section.startswith(word)), None)
    if match[3] and kind and decided:
        for name in _columns(match[3]):
            getattr(advice, kind).setdefault(name, strategy)
    elif _FOLDS.fullmatch(match[1]):
        advice.folds = advice.folds or strategy
    elif not decided:
        return
    elif match[1] in _WEIGHTS or "imbalance" in section:
        advice.class_weight = advice.class_weight or ("balanced" if match[1] in _WEIGHTS else "none")


def _columns(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def _value(text: str) -> Any:
    """Parse an argument's value: a column, perhaps with the mark that ends a group's name; a word, a number, or
    None.
    """
    if text.startswith("`"):
        column, _, mark = text[1:].partition("`")
        return {"column": column, "separator": mark[len(" before '") : -1]} if mark else column
    if text[:1] == text[-1:] == "'":
        return text[1:-1]
    try:
        return json.loads(text.lower())
    except ValueError:
        return None
