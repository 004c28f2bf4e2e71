"""A document's recommendation as readable lines, with known names and fixed terms only: none of the agent's free
text.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from mleredux_techniques._kit.data.columns import class_name
from mleredux_techniques._kit.data.dataset import Dataset
from mleredux_techniques._kit.vocabulary.document import Part

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_ -]{0,19}")


def by_choice(choices: Iterable[tuple[str, Part]], dataset: Dataset) -> list[str]:
    """Return one line per strategy, with its columns; unknown columns are omitted."""
    known = {*dataset.ids, *dataset.features}
    columns: dict[str, list[str]] = defaultdict(list)
    for column, choice in choices:
        if column in known:
            columns[spelled(choice, known)].append(f"`{column}`")
    return [f"{choice}: {', '.join(names)}" for choice, names in columns.items()]


def spelled(choice: Part, known: set[str]) -> str:
    """Format a strategy as code: `SimpleImputer(strategy='median')`, or its name if it has no arguments."""
    fields = {name: value for name, value in choice.model_dump().items() if name != "name"}
    arguments = [f"{name}={_value(value, known)}" for name, value in fields.items() if value not in (None, False)]
    name = getattr(choice, "name", "none")
    return f"{name}({', '.join(arguments)})" if arguments else name


def _value(value: object, known: set[str]) -> str:
    if isinstance(value, dict):
        if "separator" in value:
            return _key(value, known)
        return repr({name: item for name, item in value.items() if class_name(name) in known})
    if isinstance(value, list):
        return f"[{len(value)} values]"
    if isinstance(value, str):
        return repr(value) if value in known or _WORD.fullmatch(value) else "'…'"
    return repr(value)


def _key(value: dict[str, Any], known: set[str]) -> str:
    """Format a group's key: its columns, and the part of the text that identifies the group."""
    names = [name for name in (value["column"], value.get("second")) if name is not None]
    if not known.issuperset(names):
        return "'…'"
    side = "after the last" if value.get("after") else "before the first"
    mark = f" {side} {value['separator']!r}" if value["separator"] else ""
    return " and ".join(f"`{name}`" for name in names) + mark
